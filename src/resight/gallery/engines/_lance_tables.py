"""What the LanceDB engine writes and asks: schemas, conditions, errors in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import pyarrow as pa

from resight.errors import StoreError
from resight.gallery.filters import Filter

DOCUMENTS = pa.schema([("name", pa.string()), ("content", pa.large_binary())])
JOURNAL = pa.schema([("key", pa.string()), ("content", pa.string()), ("number", pa.int64())])
SIGHTINGS = pa.schema(
    [
        ("id", pa.string()),
        ("person", pa.string()),
        ("camera", pa.string()),
        ("time", pa.float64()),
        ("sequence", pa.string()),
        ("source", pa.string()),
        ("added", pa.float64()),
        ("image", pa.large_binary()),
        ("feature", pa.large_binary()),
    ]
)
CHUNK = 512  # ids in one condition

Function = TypeVar("Function", bound=Callable[..., Any])


def in_words(function: Function) -> Function:
    """Turn what LanceDB raises into errors that say what to do."""

    @wraps(function)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except (RuntimeError, ValueError, OSError, pa.ArrowException) as error:
            raise explained(self.uri, error) from error

    return wrapped  # type: ignore[return-value]


def explained(uri: str, error: Exception) -> StoreError:
    """Say in words what LanceDB raised."""
    text = str(error)
    if any(
        word in text for word in ("No space left", "File too large", "os error 28", "os error 27")
    ):
        return StoreError(
            f"gallery {uri}: the disk is full. Nothing of this step was stored, everything "
            "before it is safe; make room and run the same command again"
        )
    if any(word in text for word in ("RetryError", "HttpError", "error sending request")):
        return StoreError(
            f"gallery {uri}: the object store does not answer, or refuses. Check the address and "
            "the credentials in the environment (AWS_ENDPOINT, AWS_ACCESS_KEY_ID, ...). What was "
            "stored before is safe; run the same command again"
        )
    first = text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__
    return StoreError(
        f"gallery {uri}: a table is damaged or cannot be read or written ({first}). "
        "`resight gallery check` lists what is wrong; restore the folder from a copy or add the "
        "images to a new gallery"
    )


def read(table: Any, columns: list[str] | None = None, where: str | None = None) -> Any:
    """Read some columns of the rows that meet a condition, as an Arrow table."""
    search = table.search()
    if columns is not None:
        search = search.select(columns)
    if where:
        search = search.where(where)
    return search.limit(10**9).to_arrow()


def delete(table: Any, column: str, values: Sequence[str]) -> None:
    """Delete the rows with these values."""
    for start in range(0, len(values), CHUNK):
        table.delete(among(column, values[start : start + CHUNK]))


def quoted(text: str) -> str:
    """Write a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def among(column: str, values: Sequence[str]) -> str:
    """Write as SQL that a column has one of these values."""
    return f"{column} IN ({', '.join(map(quoted, values))})"


def condition(where: Filter) -> str:
    """Write a filter as SQL."""
    parts = []
    if where.cameras:
        parts.append(among("camera", where.cameras))
    if where.exclude_cameras:
        parts.append("NOT " + among("camera", where.exclude_cameras))
    if where.after is not None:
        parts.append(f"time >= {where.after!r}")
    if where.before is not None:
        parts.append(f"time <= {where.before!r}")
    if where.timed:
        parts.append("NOT isnan(time)")
    return " AND ".join(parts)


def holds(content: bytes, needles: Sequence[bytes]) -> bool:
    """Whether any of these byte strings is in there."""
    return any(needle in content for needle in needles)
