"""Where a gallery is kept: a folder or object store (LanceDB), or PostgreSQL with pgvector."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from urllib.request import url2pathname

from resight.errors import InputError
from resight.gallery.engines.base import Engine

_OBJECT_STORES = ("s3://", "gs://", "az://")


def connect(uri: str | Path) -> Engine:
    """Choose the engine by the form of `uri`; nothing is created yet.

    Parameters
    ----------
    uri : str or Path
        A folder (also as ``file://``); ``s3://``, ``gs://`` or ``az://`` for LanceDB on an object
        store, with its usual variables in the environment; or
        ``postgresql://user@host/database``, where ``#name`` at the end tells galleries of one
        database apart.
    """
    text = str(uri)
    if text.startswith("file://"):
        text = url2pathname(text.removeprefix("file://"))
    if text.startswith(("postgresql://", "postgres://")):
        _require("psycopg", "resight[postgres]", text)
        from resight.gallery.engines.postgres import PostgresEngine

        return PostgresEngine(text)
    if "://" in text and not text.startswith(_OBJECT_STORES):
        raise InputError(
            f"cannot keep a gallery at {text!r}; give a folder, an object store "
            f"({', '.join(_OBJECT_STORES)}) or postgresql://user@host/database"
        )
    _require("lancedb", "resight[gallery]", text)
    from resight.gallery.engines.lance import LanceEngine

    return LanceEngine(text)


def _require(module: str, extra: str, uri: str) -> None:
    if find_spec(module) is None:
        raise InputError(f"a gallery at {uri!r} needs the package {module}: pip install '{extra}'")
