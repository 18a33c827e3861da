"""A gallery that `resight serve` serves elsewhere, with the names of `Gallery`."""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from resight.datasets.sightings import Sightings
from resight.datasets.table import write_table
from resight.errors import ConflictError, InputError, StoreError
from resight.gallery.groups import Group
from resight.gallery.jobs import Job
from resight.gallery.jobs import Kind as JobKind
from resight.gallery.labels import Kind
from resight.gallery.people import Card, Order
from resight.gallery.searching import Hit, Hits
from resight.validation import check_file

Correction = Literal["rename", "merge", "split", "detach", "cover"]
_BLOCK = 1 << 20
_SECONDS = 120.0


def connect(url: str, token: str, *, purpose: str = "") -> RemoteGallery:
    """Use a gallery that `resight serve` serves.

    Parameters
    ----------
    url : str
        Address that `resight serve` printed, such as ``https://gallery.example``.
    token : str
        As printed by ``resight gallery users GALLERY --token NAME``.
    purpose : str
        What the log says the searches are for, where the gallery asks for it.

    Examples
    --------
    >>> gallery = connect("http://127.0.0.1:8000", token)  # doctest: +SKIP
    >>> gallery.search("query.jpg", k=5)                   # doctest: +SKIP
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"address {url!r}: give that of the server, http://... or https://...")
    return RemoteGallery(f"{parts.scheme}://{parts.netloc}", token, purpose)


class _NoRedirects(HTTPRedirectHandler):
    """Refuses to follow: the token is for this server alone."""

    def redirect_request(self, *args: Any, **named: Any) -> None:
        return None


class RemoteGallery:
    """A gallery on a server; made by `resight.connect`. Errors are those of `Gallery`."""

    def __init__(self, address: str, token: str, purpose: str = "") -> None:
        self.address = address
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if purpose:
            self._headers["Resight-Purpose"] = purpose
        self._opener = build_opener(_NoRedirects)

    def __len__(self) -> int:
        return int(self.info()["sightings"])

    def info(self) -> dict[str, Any]:
        """Describe the gallery in plain data."""
        return dict(self._get("/info.json"))

    # ---- sightings

    def search(self, query: str | Path, k: int = 20, **where: Any) -> Hits:
        """Find the sightings most like an image; `where` as of `Gallery.search`."""
        upload = self._send("/upload", [("image", Path(query).name, check_file(query))])["upload"]
        return self._hits(k, where, upload=upload)

    def search_like(self, sighting: str, k: int = 20, **where: Any) -> Hits:
        """Find the sightings most like a stored one."""
        return self._hits(k, where, like=sighting)

    def _hits(self, k: int, where: dict[str, Any], **query: str) -> Hits:
        names = {"cameras": "camera", "persons": "person", "after": "after", "before": "before"}
        unknown = [name for name in where if name not in names]
        if unknown:
            raise InputError(f"unknown condition {unknown[0]!r}. Valid: {', '.join(names)}")
        found = self._get(
            "/search.json", k=k, **query, **{names[n]: value for n, value in where.items()}
        )
        hits = Hits(Hit(**{f.name: one.get(f.name) for f in fields(Hit)}) for one in found["hits"])
        hits.missing = found["missing"]
        return hits

    def image(self, sighting: str) -> bytes:
        """Return the stored image of a sighting."""
        return self._ask(f"/image/{quote(sighting)}")

    def add(self, what: Sightings | str | Path | Sequence[str | Path], **how: Any) -> Job:
        """Upload sightings, or files and folders of images, zips, CSV tables and videos.

        `how` may be ``camera`` (of all of it; a video needs it) and ``start`` (of a video, see
        `cut`). Returns the job; `wait` for its end.
        """
        with tempfile.TemporaryDirectory() as folder:
            if isinstance(what, Sightings):
                write_table(what, Path(folder) / "sightings.csv")
                files = [("sightings.csv", Path(folder) / "sightings.csv")]
                names = dict.fromkeys(what.paths.tolist())
                files += [(str(name), what.root / str(name)) for name in names]
            else:
                given = [what] if isinstance(what, (str, Path)) else what
                files = [file for one in given for file in _files(Path(one))]
            parts = [("file", name, check_file(path)) for name, path in files]
            return Job(**self._send("/jobs/add", parts, **how))

    def start(self, kind: JobKind) -> Job:
        """Start "improve", "rebuild" (use the model that "improve" found) or "group"."""
        return Job(**self._post(f"/jobs/{kind}"))

    def jobs(self) -> list[Job]:
        """List jobs, the newest first."""
        return [Job(**one) for one in self._get("/jobs.json")["jobs"]]

    def wait(self, job: Job, every: float = 1.0) -> Job:
        """Wait until a job has ended."""
        while job.open:
            time.sleep(every)
            job = Job(**self._get(f"/jobs/{job.key}.json"))
        return job

    # ---- people and answers

    def people(
        self, query: str = "", page: int = 1, *, order: Order = "name"
    ) -> tuple[list[Card], int]:
        """Return a page of people, and how many there are."""
        found = self._get("/people.json", query=query, page=page, order=order)
        return [Card(**one) for one in found["people"]], int(found["total"])

    def correct(self, what: Correction, name: str, *, seen: str = "", **how: Any) -> str:
        """Correct a person as the functions of `resight.gallery.people` do.

        "rename" takes ``new``, "merge" ``other``, "cover" ``sighting``, "detach" a list
        ``sighting``, "split" that and ``new``. Returns the key that `undo` takes.
        """
        return self._answer(f"/people/{what}", name=name, seen=seen, **how)

    def teach(self, kind: Kind, a: str, b: str = "", *, person: str = "") -> str:
        """Say "same", "different" or "unsure" of two sightings, or "name" one."""
        if kind == "name":
            return self._answer("/name", a=a, person=person)
        return self._answer("/teach", kind=kind, a=a, b=b)

    def undo(self, key: str) -> None:
        """Undo an answer."""
        self._post("/undo", key=key)

    def next_group(self, after: str = "") -> Group | None:
        """Return the surest group of unknown sightings."""
        found = self._get("/unknowns.json", after=after)["group"]
        return None if found is None else Group(**{f.name: found[f.name] for f in fields(Group)})

    def accept(
        self, sightings: Sequence[str], *, dropped: Sequence[str] = (), name: str = ""
    ) -> str:
        """Make unknown sightings one person; those dropped show somebody else."""
        form = {"sighting": sightings, "dropped": dropped, "name": name}
        return self._answer("/unknowns/accept", **form)

    def export(self, form: str = "csv", person: str = "") -> str:
        """Return labels and answers as text: "csv", "answers.csv", "json" or "coco"."""
        path = {"csv": "/labels.csv", "json": "/labels.json", "coco": "/labels.coco.json"}
        return self._ask(f"{path.get(form, f'/{form}')}?{_encoded(person=person)}").decode()

    # ---- requests

    def _answer(self, path: str, **form: Any) -> str:
        return str(self._post(path, **form)["taught"]["key"])

    def _get(self, path: str, **query: Any) -> Any:
        return json.loads(self._ask(f"{path}?{_encoded(**query)}"))

    def _post(self, path: str, **form: Any) -> Any:
        return json.loads(self._ask(path, _encoded(**form).encode()))

    def _send(self, path: str, files: list[tuple[str, str, Path]], **form: Any) -> Any:
        """Post files, read from the disk block by block."""
        line = f"--{secrets.token_hex(16)}"
        heads = [_head(line, field, name) for field, name, _ in files]
        start = b"".join(
            _head(line, name) + str(value).encode() + b"\r\n" for name, value in form.items()
        )
        end = f"{line}--\r\n".encode()
        sizes = sum(path.stat().st_size + 2 for _, _, path in files)
        length = len(start) + sum(map(len, heads)) + sizes + len(end)

        def body() -> Iterator[bytes]:
            yield start
            for head, (_, _, path) in zip(heads, files, strict=True):
                yield head
                with path.open("rb") as stream:
                    while block := stream.read(_BLOCK):
                        yield block
                yield b"\r\n"
            yield end

        kind = {"Content-Type": f"multipart/form-data; boundary={line[2:]}"}
        return json.loads(self._ask(path, body(), {**kind, "Content-Length": str(length)}))

    def _ask(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> bytes:
        request = Request(self.address + path, body, {**self._headers, **(headers or {})})
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            self._explain(error)
        except (URLError, OSError) as error:
            raise StoreError(
                f"no answer from {self.address} ({error}); is `resight serve` running there?"
            ) from error

    def _explain(self, error: HTTPError) -> NoReturn:
        """Raise what the server said as the error it was there."""
        with error:
            try:
                words = str(json.loads(error.read())["error"])
            except (ValueError, KeyError, TypeError):
                words = f"status {error.code}; is this the address of `resight serve`?"
        if error.code == 409:
            raise ConflictError(words) from None
        kind = InputError if error.code in (404, 413, 422) else StoreError
        raise kind(f"{self.address}: {words}") from None


def _encoded(**values: Any) -> str:
    kept = {name: value for name, value in values.items() if value not in (None, "", ())}
    return urlencode(kept, doseq=True)


def _head(line: str, field: str, file: str = "") -> bytes:
    """Begin a part of a multipart body."""
    name = file.replace("\\", "/").replace('"', "%22")
    about = f'; filename="{name}"\r\nContent-Type: application/octet-stream' if file else ""
    return f'{line}\r\nContent-Disposition: form-data; name="{field}"{about}\r\n\r\n'.encode()


def _files(path: Path) -> list[tuple[str, Path]]:
    if not path.is_dir():
        return [(path.name, path)]
    found = sorted(file for file in path.rglob("*") if file.is_file())
    return [(file.relative_to(path).as_posix(), file) for file in found]
