"""A gallery that `resight serve` serves elsewhere, with the names of `Gallery`."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from resight.datasets.sightings import Sightings
from resight.datasets.table import write_table
from resight.errors import ConflictError, InputError, StoreError
from resight.gallery.jobs import Job
from resight.gallery.labels import Entry, Kind
from resight.gallery.people import Card, Order
from resight.gallery.searching import Hit, Hits
from resight.validation import check_file

_Kind = TypeVar("_Kind", Hit, Job, Card, Entry)
_SECONDS = 120.0
_CONDITIONS = {"cameras": "camera", "persons": "person", "after": "after", "before": "before"}
_ERRORS = {404: InputError, 409: ConflictError, 413: InputError, 422: InputError}


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
    """A gallery on a server; made by `resight.connect`. Errors are those of `Gallery`.

    `get` and `post` ask any other route of the server, such as
    ``post("/people/rename", name="Ann", new="Anna")``; see docs/api.md.
    """

    def __init__(self, address: str, token: str, purpose: str = "") -> None:
        self.address = address
        self._opener = build_opener(_NoRedirects)
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        headers |= {"Resight-Purpose": purpose} if purpose else {}
        self._opener.addheaders = [*headers.items()]

    def __len__(self) -> int:
        return int(self.info()["sightings"])

    def info(self) -> dict[str, Any]:
        """Describe the gallery in plain data."""
        return dict(self.get("/info.json"))

    def search(self, query: str | Path, k: int = 20, **where: Any) -> Hits:
        """Find the sightings most like an image; `where` as of `Gallery.search`."""
        return self._hits(k, where, upload=self._send("/upload", "image", _files(query))["upload"])

    def search_like(self, sighting: str, k: int = 20, **where: Any) -> Hits:
        """Find the sightings most like a stored one."""
        return self._hits(k, where, like=sighting)

    def _hits(self, k: int, where: dict[str, Any], **query: str) -> Hits:
        for name in where:
            if name not in _CONDITIONS:
                raise InputError(f"unknown condition {name!r}. Valid: {', '.join(_CONDITIONS)}")
        asked = {_CONDITIONS[name]: value for name, value in where.items()}
        found = self.get("/search.json", k=k, **query, **asked)
        hits = Hits(_made(Hit, one) for one in found["hits"])
        hits.missing = found["missing"]
        return hits

    def image(self, sighting: str) -> bytes:
        """Return the stored image of a sighting."""
        return self._ask(f"/image/{quote(sighting)}")

    def add(self, what: Sightings | str | Path, **how: Any) -> Job:
        """Upload sightings, or a file or folder of images, zips, CSV tables and videos.

        `how` may be ``camera`` (of all of it; a video needs it) and ``start`` (of a video, see
        `cut`). Returns the job; `wait` for its end.
        """
        with tempfile.TemporaryDirectory() as folder:
            if isinstance(what, Sightings):
                table = Path(folder) / "sightings.csv"
                write_table(what, table)
                files = {str(name): what.root / str(name) for name in what.paths.tolist()}
                files[table.name] = table
            else:
                files = _files(what)
            return _made(Job, self._send("/jobs/add", "file", files, **how))

    def wait(self, job: Job, every: float = 1.0) -> Job:
        """Wait until a job has ended."""
        while job.open:
            time.sleep(every)
            job = _made(Job, self.get(f"/jobs/{job.key}.json"))
        return job

    def people(
        self, query: str = "", page: int = 1, *, order: Order = "name"
    ) -> tuple[list[Card], int]:
        """Return a page of people, and how many there are."""
        found = self.get("/people.json", query=query, page=page, order=order)
        return [_made(Card, one) for one in found["people"]], int(found["total"])

    def teach(self, kind: Kind, a: str, b: str = "", *, person: str = "") -> Entry:
        """Say "same", "different" or "unsure" of two sightings, "name" one, or "undo" a key."""
        if kind == "undo":
            done = self.post("/undo", key=a)
        elif kind == "name":
            done = self.post("/name", a=a, person=person)
        else:
            done = self.post("/teach", kind=kind, a=a, b=b)
        return _made(Entry, done["taught"])

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of a route."""
        return json.loads(self._ask(f"{path}?{_encoded(query)}"))

    def post(self, path: str, **form: Any) -> Any:
        """Send a change; return what it made."""
        return json.loads(self._ask(path, _encoded(form).encode()))

    def _send(self, path: str, field: str, files: dict[str, Path], **form: Any) -> Any:
        """Post files by name; the body is put together on the disk, never in memory."""
        line = secrets.token_hex(16)
        with tempfile.TemporaryFile() as body:
            for name, value in form.items():
                body.write(_head(line, name) + str(value).encode() + b"\r\n")
            for name, file in files.items():
                body.write(_head(line, field, name))
                with check_file(file).open("rb") as stream:
                    shutil.copyfileobj(stream, body)
                body.write(b"\r\n")
            body.write(f"--{line}--\r\n".encode())
            headers = {"Content-Type": f"multipart/form-data; boundary={line}"}
            headers["Content-Length"] = str(body.tell())
            body.seek(0)
            return json.loads(self._ask(path, body, headers))

    def _ask(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> bytes:
        try:
            request = Request(self.address + path, body, headers or {})
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return bytes(answer.read())
        except HTTPError as error:  # raised here as what it was there
            with error:
                try:
                    words = str(json.loads(error.read())["error"])
                except (ValueError, KeyError, TypeError):
                    words = f"status {error.code}; is this the address of `resight serve`?"
            where = "" if error.code == 409 else f"{self.address}: "
            raise _ERRORS.get(error.code, StoreError)(where + words) from None
        except OSError as error:
            raise StoreError(
                f"no answer from {self.address} ({error}); is `resight serve` running there?"
            ) from error


def _made(kind: type[_Kind], told: dict[str, Any]) -> _Kind:
    """Make of what the server told of a sighting, job, person or answer what it is in Python."""
    names = {one.name for one in fields(kind)}
    return kind(**{name: value for name, value in told.items() if name in names})


def _encoded(values: dict[str, Any]) -> str:
    kept = {name: value for name, value in values.items() if value not in (None, "", ())}
    return urlencode(kept, doseq=True)


def _head(line: str, field: str, file: str = "") -> bytes:
    """Begin a part of a multipart body."""
    name = file.replace("\\", "/").replace('"', "%22")
    about = f'; filename="{name}"\r\nContent-Type: application/octet-stream' if file else ""
    return f'--{line}\r\nContent-Disposition: form-data; name="{field}"{about}\r\n\r\n'.encode()


def _files(given: str | Path) -> dict[str, Path]:
    """Return a file, or all files of a folder, by the names they are sent under."""
    path = Path(given)
    if not path.is_dir():
        return {path.name: path}
    found = sorted(file for file in path.rglob("*") if file.is_file())
    return {file.relative_to(path).as_posix(): file for file in found}
