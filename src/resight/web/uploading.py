"""Forms with files of any size: streamed to the disk part by part, never held in memory."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from resight.errors import InputError
from resight.gallery.spool import Draft

_LONGEST = 10_000  # characters of a field that is no file


class FormToDisk:
    """Writes the files of one form into a draft; the other fields are kept as text."""

    def __init__(self, draft: Draft) -> None:
        self.fields: dict[str, str] = {}
        self.files: list[Path] = []
        self.draft = draft
        self._header, self._value, self._headers = b"", b"", dict[bytes, bytes]()
        self._name, self._text = "", b""
        self._stream: IO[bytes] | None = None

    async def read(self, request: Request) -> None:
        """Read the body of a request."""
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise InputError("the upload contained no file; try again")
        names = ("part_begin", "header_field", "header_value", "header_end", "headers_finished")
        names += ("part_data", "part_end")
        calls = {f"on_{name}": getattr(self, f"_{name}") for name in names}
        parser = MultipartParser(options[b"boundary"], calls)  # type: ignore[arg-type]
        try:
            async for chunk in request.stream():
                await run_in_threadpool(parser.write, chunk)
        except FormParserError as error:
            raise InputError("the upload is damaged; try again") from error
        finally:
            self._part_end()

    def _part_begin(self) -> None:
        self._header, self._value, self._headers = b"", b"", {}
        self._name, self._text = "", b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header, self._value = b"", b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        file = options.get(b"filename", b"").decode("utf-8", "replace")
        if file:
            self.files.append(self.draft.write(file, ()))
            self._stream = self.files[-1].open("ab")

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._stream is not None:
            self._stream.write(data[start:end])
        elif len(self._text) < _LONGEST:
            self._text += data[start:end]

    def _part_end(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        elif self._name:
            self.fields[self._name] = self._text.decode("utf-8", "replace")
        self._name = ""
