"""A small server that speaks S3's protocol, kept in memory: enough for an object store client.

Signatures are not checked. Objects are replaced as a whole, and a conditional write (If-None-Match)
is refused if the object is there: the two promises that commits on an object store rest on.
"""

from __future__ import annotations

import hashlib
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
_DATE = "2024-05-31T14:00:00.000Z"


class Handler(BaseHTTPRequestHandler):
    """One request; all of them share the objects."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet: the client would wait for the second
    disable_nagle_algorithm = True
    objects: ClassVar[dict[str, bytes]] = {}
    uploads: ClassVar[dict[str, dict[int, bytes]]] = {}
    refused: ClassVar[list[str]] = []
    lock: ClassVar[threading.RLock] = threading.RLock()

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        asked = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        return unquote(parts.path).lstrip("/"), asked

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, code: int, content: bytes | str = b"", **headers: str) -> None:
        body = content.encode() if isinstance(content, str) else content
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, code: int, words: str) -> None:
        self._answer(code, f"{_HEAD}<Error><Code>{words}</Code><Message>{words}</Message></Error>")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        key, asked = self._asked()
        if "list-type" in asked:
            self._list(key.rstrip("/"), asked)
            return
        with self.lock:
            content = self.objects.get(key)
        if content is None:
            self._error(404, "NoSuchKey")
            return
        facts = {"ETag": _tag(content), "Last_Modified": formatdate(0, usegmt=True)}
        wanted = self.headers.get("Range")
        if wanted is None:
            self._answer(200, content, **facts)
            return
        first, last = _range(wanted, len(content))
        span = f"bytes {first}-{last}/{len(content)}"
        self._answer(206, content[first : last + 1], Content_Range=span, **facts)

    def do_PUT(self) -> None:
        key, asked = self._asked()
        body = self._body()
        if "partNumber" in asked:
            with self.lock:
                self.uploads[asked["uploadId"]][int(asked["partNumber"])] = body
            self._answer(200, ETag=_tag(body))
            return
        source = self.headers.get("x-amz-copy-source")
        with self.lock:
            if source is not None:
                body = self.objects[unquote(source).lstrip("/")]
            if self.headers.get("If-None-Match") == "*" and key in self.objects:
                self.refused.append(key)
                self._error(412, "PreconditionFailed")
                return
            self.objects[key] = body
        result = f"<CopyObjectResult><ETag>{escape(_tag(body))}</ETag></CopyObjectResult>"
        self._answer(200, _HEAD + result if source is not None else b"", ETag=_tag(body))

    def do_POST(self) -> None:
        key, asked = self._asked()
        body = self._body()
        if "uploads" in asked:
            name = hashlib.md5(f"{key}{len(self.uploads)}".encode()).hexdigest()
            self.uploads[name] = {}
            inner = f"<Bucket>b</Bucket><Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
            self._answer(
                200,
                f"{_HEAD}<InitiateMultipartUploadResult>{inner}</InitiateMultipartUploadResult>",
            )
        elif "uploadId" in asked:
            with self.lock:
                parts = self.uploads.pop(asked["uploadId"])
                content = b"".join(parts[number] for number in sorted(parts))
                self.objects[key] = content
            inner = f"<Key>{escape(key)}</Key><ETag>{escape(_tag(content))}</ETag>"
            self._answer(
                200,
                f"{_HEAD}<CompleteMultipartUploadResult>{inner}</CompleteMultipartUploadResult>",
            )
        else:
            self._delete_many(key.rstrip("/"), body)

    def _delete_many(self, bucket: str, body: bytes) -> None:
        keys = [e.text or "" for e in ElementTree.fromstring(body).iter() if e.tag.endswith("Key")]
        with self.lock:
            for key in keys:
                self.objects.pop(f"{bucket}/{key}", None)
        done = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self._answer(200, f"{_HEAD}<DeleteResult>{done}</DeleteResult>")

    def do_DELETE(self) -> None:
        key, asked = self._asked()
        with self.lock:
            if "uploadId" in asked:
                self.uploads.pop(asked["uploadId"], None)
            else:
                self.objects.pop(key, None)
        self._answer(204)

    def _list(self, bucket: str, asked: dict[str, str]) -> None:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = asked.get("continuation-token", asked.get("start-after", ""))
        with self.lock:
            named = {k[len(bucket) + 1 :]: v for k, v in self.objects.items()}
        entries, folders = [], set()
        for key in sorted(k for k in named if k.startswith(prefix) and k > after):
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
            else:
                entries.append(
                    f"<Contents><Key>{escape(key)}</Key><LastModified>{_DATE}</LastModified>"
                    f"<ETag>{escape(_tag(named[key]))}</ETag><Size>{len(named[key])}</Size>"
                    "</Contents>"
                )
        common = (
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        )
        inner = f"<IsTruncated>false</IsTruncated>{''.join(entries)}{''.join(common)}"
        self._answer(200, f"{_HEAD}<ListBucketResult>{inner}</ListBucketResult>")

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


def _range(wanted: str, size: int) -> tuple[int, int]:
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    if not first:  # the last bytes
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


def start() -> tuple[ThreadingHTTPServer, str]:
    """Start an empty store on a free port; return it and its address."""
    Handler.objects.clear()
    Handler.uploads.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"
