"""Bad requests to the page and its JSON API: data, and one client that knows how to come in."""

from __future__ import annotations

import logging
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.fuzz import Case, Verdict
from benchmarks.fuzz.forged_data import images
from benchmarks.fuzz.lines import HUGE, NAMES, TIMES
from benchmarks.fuzz.material import Material

TIMEOUT = 15.0


class Bad(NamedTuple):
    """A request that must be refused with a status between 400 and 499.

    `form` and `upload` are sent with the word that forms of this session carry, unless
    `forged`; A and B stand for two stored sightings.
    """

    name: str
    method: str
    path: str
    query: dict[str, Any] | None = None
    form: dict[str, str] | None = None
    upload: bytes | None = None
    headers: dict[str, str] | None = None
    forged: bool = False


def requests() -> list[Bad]:
    """Return all of them; routes that need a login must refuse them even to who is logged in."""
    get: list[tuple[str, dict[str, Any]]] = [
        ("/search.json", {}),
        ("/search", {}),
        ("/why.json", {"hit": "A"}),
        ("/why", {"hit": "nobody", "like": "A"}),
        ("/why.json", {"like": "A"}),
        ("/person", {"name": "nobody"}),
        ("/person.json", {}),
        ("/person.json", {"name": ""}),
        ("/index.json", {"page": "0"}),
        ("/index.json", {"page": HUGE + "x"}),
        ("/", {"page": "nonsense"}),
        ("/", {"page": "-1"}),
        ("/image/nobody", {}),
        ("/image/..%2f..%2fetc%2fpasswd", {}),
        ("/image/%00", {}),
        ("/image/" + "a" * 5000, {}),
        ("/upload/nobody", {}),
        ("/static/..%2fapp.py", {}),
        ("/static/nothing", {}),
        ("/nothing", {}),
        ("/search.json", {"upload": "nobody"}),
    ]
    for value in ("nobody", "", "\x07", "a" * 5000, "\u202e", "' OR 1=1 --"):
        get += [("/search.json", {"like": value}), ("/search", {"like": value or " "})]
        get += [("/why.json", {"hit": "A", "like": value})]
    for value in ("0", "-1", "501", "nan", "", "1.5", HUGE, "abc"):
        get += [("/search.json", {"like": "A", "k": value})]
    for value in TIMES:
        if value.strip() and "\udcff" not in value:
            get += [("/search.json", {"like": "A", side: value}) for side in ("after", "before")]
    get += [("/search", {"like": "A", "after": "2024-05-02", "before": "2024-05-01"})]
    get += [("/search.json", {"like": "A", "camera": value}) for value in ("nonsense", "\x07")]
    found = [Bad(f"GET {path} {str(query)[:80]}", "GET", path, query) for path, query in get]
    forms: list[tuple[str, dict[str, str]]] = [
        ("/teach", {}),
        ("/teach", {"kind": "love", "a": "A", "b": "B"}),
        ("/teach", {"kind": "same", "a": "A"}),
        ("/teach", {"kind": "same", "a": "A", "b": "A"}),
        ("/teach", {"kind": "same", "a": "A", "b": "nobody"}),
        ("/teach", {"kind": "same", "a": "", "b": ""}),
        ("/teach", {"kind": "undo", "a": "A", "b": "B"}),
        ("/undo", {}),
        ("/undo", {"key": "nothing"}),
        ("/refit/undo", {}),
        ("/name", {"a": "A"}),
        ("/name", {"a": "nobody", "person": "x"}),
    ]
    forms += [("/name", {"a": "A", "person": name}) for name in ("", "  ", "a\0b", *NAMES[:4])]
    found += [
        Bad(f"POST {path} {str(form)[:80]}", "POST", path, None, form) for path, form in forms
    ]
    for path in ("/teach", "/name", "/undo", "/jobs/improve", "/jobs/rebuild", "/refit/undo"):
        form = {"kind": "same", "a": "A", "b": "B", "person": "x", "key": "x"}
        found += [Bad(f"forged POST {path}", "POST", path, None, form, forged=True)]
        found += [Bad(f"{method} {path}", method, path) for method in ("PUT", "DELETE", "PATCH")]
    found += [Bad(f"upload {n}", "POST", "/upload", upload=data) for n, data in images().items()]
    found += [
        Bad("upload of nothing", "POST", "/upload", upload=b""),
        Bad("upload of 22 MB", "POST", "/upload", upload=b"\0" * (22 * 2**20)),
        Bad("upload without a file", "POST", "/upload", None, {"image": "text"}),
        Bad("forged upload", "POST", "/upload", upload=images()["EPS"], forged=True),
        Bad("a foreign host", "GET", "/", headers={"Host": "evil.example"}),
    ]
    return found


class Client:
    """A browser without JavaScript: the one place that knows how one is let in."""

    def __init__(self, address: str, ids: tuple[str, str]) -> None:
        import httpx

        self._http = httpx.Client(base_url=address, timeout=TIMEOUT)
        self._ids = dict(zip("AB", ids, strict=True))
        self._csrf = str(self._http.get("/info.json").json()["csrf"])

    def _filled(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: self._ids.get(value, value) for name, value in values.items()}

    def send(self, bad: Bad) -> Verdict:
        """Send a request and judge the answer."""
        import httpx

        word = {} if bad.forged else {"csrf": self._csrf}
        form = None if bad.form is None and bad.upload is None else {**(bad.form or {}), **word}
        files = None if bad.upload is None else {"image": ("a.png", bad.upload)}
        try:
            answer = self._http.request(
                bad.method,
                bad.path,
                params=self._filled(bad.query) if bad.query else None,
                data=None if form is None else self._filled(form),
                files=files,
                headers=bad.headers,
            )
        except httpx.TimeoutException:
            return Verdict("hang", f"no answer within {TIMEOUT:g} s")
        except (httpx.RemoteProtocolError, httpx.WriteError) as error:
            return Verdict("refused", str(error))  # closed on purpose: a large body is not read
        return judge(answer)


def judge(answer: Any) -> Verdict:
    """Judge an answer: refused by its status, with the headers of every page."""
    words = f"{answer.status_code} {answer.text[:300]}"
    if answer.status_code >= 500:
        return Verdict("traceback", words)
    if answer.status_code < 400:
        return Verdict("accepted", words)
    ours = answer.headers.get("content-type", "").startswith(("text/html", "application/json"))
    if ours and "content-security-policy" not in answer.headers:
        return Verdict("traceback", f"no Content-Security-Policy: {words}")
    return Verdict("refused", words)


@contextmanager
def server(m: Material, folder: Path) -> Iterator[Client]:
    """Serve a copy of the gallery on a free port."""
    import uvicorn

    from resight.gallery import Gallery
    from resight.web.app import make_app
    from resight.web.security import Guard
    from resight.web.serving import Settings, server_config

    shutil.copytree(m("gallery"), folder / "gallery")
    gallery = Gallery.open(folder / "gallery")
    logging.getLogger("resight.web.app").disabled = True  # what fails is counted
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    app = make_app(gallery, Guard(gallery, login=False))
    serving = uvicorn.Server(server_config(app, Settings()))
    thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not serving.started:
        time.sleep(0.01)
    a, b = gallery.view.table.ids[:2].tolist()
    try:
        yield Client(f"http://127.0.0.1:{listener.getsockname()[1]}", (a, b))
    finally:
        serving.should_exit = True
        thread.join(TIMEOUT)
        gallery.close()
        listener.close()


def cases(client: Client, every: int = 1) -> list[Case]:
    """Return all bad requests."""
    return [
        Case("web requests", bad.name, lambda bad=bad: client.send(bad))  # type: ignore[misc]
        for bad in requests()[::every]
    ]
