"""Forms with files of any size: streamed to the disk part by part, never held in memory."""

from __future__ import annotations

import os
from typing import Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from python_multipart import create_form_parser
from python_multipart.exceptions import FormParserError

from resight.errors import InputError
from resight.gallery.spool import Draft

_IN_MEMORY = 2**20  # bytes of a file above which it goes to the disk while it comes


async def read_form(request: Request, draft: Draft) -> dict[str, str]:
    """Write the files of a form into a draft, and return its other fields."""
    fields: dict[str, str] = {}

    def on_field(field: Any) -> None:
        fields[field.field_name.decode("utf-8", "replace")] = (field.value or b"").decode()

    def on_file(file: Any) -> None:
        name = (file.file_name or b"").decode("utf-8", "replace")
        if name and file.in_memory:
            draft.write(name, [file.file_object.getvalue()])
        elif name:
            os.replace(os.fsdecode(file.actual_file_name), draft.write(name, ()))
        file.close()

    config = {
        "UPLOAD_DIR": str(draft.folder),
        "UPLOAD_DELETE_TMP": False,  # it is moved to its place
        "MAX_MEMORY_FILE_SIZE": _IN_MEMORY,
        "MAX_FIELD_SIZE": 10_000,
    }
    headers = {"Content-Type": request.headers.get("content-type", "none").encode("latin-1")}
    try:
        parser = create_form_parser(headers, on_field, on_file, config=config)
        async for chunk in request.stream():
            await run_in_threadpool(parser.write, chunk)
        await run_in_threadpool(parser.finalize)
    except (FormParserError, UnicodeDecodeError) as error:
        raise InputError("the upload contained no file, or is damaged; try again") from error
    return fields
