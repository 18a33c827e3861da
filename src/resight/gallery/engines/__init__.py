"""Where a gallery is kept: a folder (SQLite), or PostgreSQL with pgvector."""

from __future__ import annotations

from pathlib import Path

from resight.errors import InputError, require_package
from resight.gallery.engines.base import Engine
from resight.gallery.engines.sqlite import SqliteEngine
from resight.validation import MAX_PATH, check_name


def connect(uri: str | Path) -> Engine:
    """Choose the engine by the form of `uri`; nothing is created yet.

    That is a folder (also as ``file://``), or ``postgresql://user@host/database``, where ``#name``
    at the end tells galleries of one database apart.
    """
    text = check_name(str(uri), "gallery", MAX_PATH)
    if text.startswith("file://"):
        from urllib.request import url2pathname

        text = url2pathname(text.removeprefix("file://"))
    if text.startswith(("postgresql://", "postgres://")):
        require_package("psycopg", "postgres", f"a gallery at {text!r}")
        from resight.gallery.engines.postgres import PostgresEngine

        return PostgresEngine(text)
    if text.startswith(("s3://", "gs://", "az://")):
        raise InputError(
            f"a gallery cannot be used on an object store any longer ({text}). One that resight "
            f"0.1 wrote is converted by: resight gallery convert {text} NEW"
        )
    if "://" in text:
        raise InputError(
            f"cannot keep a gallery at {text!r}; give a folder or postgresql://user@host/database"
        )
    return SqliteEngine(text)
