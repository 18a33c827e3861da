"""LanceDB: a gallery in a folder (or on an object store), with nothing to start.

Lance tables are versioned: a write adds files and then commits a new version in one step, so a
killed process leaves the last version as it was. A sighting's embedding is written before its
row: the row is the commit point, and an embedding without a row is never shown.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import Bitmap, BTree, IvfFlat
from numpy.typing import NDArray

from resight.errors import StoreError
from resight.gallery.engines.base import Column, Engine, Floats32, Rows, Table
from resight.gallery.filters import Filter

_DOCUMENTS = pa.schema([("name", pa.string()), ("content", pa.large_binary())])
_JOURNAL = pa.schema([("key", pa.string()), ("content", pa.string()), ("number", pa.int64())])
_SIGHTINGS = pa.schema(
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
_JOURNALS = ("labels", "access")
_META = [name for name in _SIGHTINGS.names if name not in ("image", "feature")]
_CHUNK = 512  # ids in one condition
_SCATTERED = 64  # fragments of a journal before they are joined

Function = TypeVar("Function", bound=Callable[..., Any])


def _in_words(function: Function) -> Function:
    """Turn what LanceDB raises into errors that say what to do."""

    @wraps(function)
    def wrapped(self: LanceEngine, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except (RuntimeError, ValueError, OSError, pa.ArrowException) as error:
            raise _explained(self.uri, error) from error

    return wrapped  # type: ignore[return-value]


def _explained(uri: str, error: Exception) -> StoreError:
    text = str(error)
    if any(
        word in text for word in ("No space left", "File too large", "os error 28", "os error 27")
    ):
        return StoreError(
            f"gallery {uri}: the disk is full. Nothing of this step was stored, everything "
            "before it "
            "is safe; make room and run the same command again"
        )
    first = text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__
    return StoreError(
        f"gallery {uri}: a table is damaged or cannot be read or written ({first}). "
        "`resight gallery check` lists what is wrong; restore the folder from a copy or add the "
        "images to a new gallery"
    )


class LanceEngine(Engine):
    """A gallery as Lance tables under one folder or object store prefix."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._local = None if "://" in uri else Path(uri)
        self._database: Any = None

    @property
    def _db(self) -> Any:
        if self._database is None:
            # Interval 0: every read looks for versions that other processes committed.
            self._database = lancedb.connect(self.uri, read_consistency_interval=timedelta(0))
        return self._database

    def _names(self) -> list[str]:
        names: list[str] = []
        page: str | None = None
        while True:
            answer = self._db.list_tables(page_token=page)
            names += answer.tables
            page = answer.page_token
            if not page:
                return names

    def _open(self, name: str) -> Any:
        return self._db.open_table(name)

    def exists(self) -> bool:
        """Whether there is a gallery: a folder without our tables is none."""
        if self._local is not None and not self._local.is_dir():
            return False
        return "documents" in self._names()

    @_in_words
    def create(self) -> None:
        """Make the empty tables; documents come last and mark the gallery as there."""
        self._db.create_table("sightings", schema=_SIGHTINGS)
        for journal in _JOURNALS:
            self._db.create_table(journal, schema=_JOURNAL)
        self._db.create_table("documents", schema=_DOCUMENTS)

    @_in_words
    def version(self) -> tuple[object, object]:
        """Return the versions of the tables."""
        documents, sightings, labels = (
            self._open(name).version for name in ("documents", "sightings", "labels")
        )
        return (documents, sightings), labels

    @_in_words
    def get(self, name: str) -> bytes | None:
        """Read a document."""
        found = _read(self._open("documents"), ["content"], f"name = {_quoted(name)}")
        return bytes(found["content"][0].as_py()) if found.num_rows else None

    @_in_words
    def put(self, documents: dict[str, bytes]) -> None:
        """Write documents in one commit."""
        rows = pa.table([list(documents), list(documents.values())], schema=_DOCUMENTS)
        merge = self._open("documents").merge_insert("name")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)

    @_in_words
    def names(self, prefix: str) -> list[str]:
        """List documents."""
        found = _read(self._open("documents"), ["name"])["name"].to_pylist()
        return sorted(name for name in found if name.startswith(prefix))

    @_in_words
    def drop(self, names: Sequence[str]) -> None:
        """Remove documents."""
        _delete(self._open("documents"), "name", names)

    @_in_words
    def append(self, journal: str, key: str, text: str) -> None:
        """Add one entry; many small fragments are joined now and then."""
        table = self._open(journal)
        table.add(pa.table([[key], [text], [time.time_ns()]], schema=_JOURNAL))
        if table.version % _SCATTERED == 0:
            table.optimize(cleanup_older_than=timedelta(hours=1))

    @_in_words
    def read(self, journal: str) -> list[tuple[str, str]]:
        """Return the entries in the order of their times."""
        found = _read(self._open(journal), _JOURNAL.names).sort_by([("number", "ascending")])
        return list(zip(found["key"].to_pylist(), found["content"].to_pylist(), strict=True))

    @_in_words
    def strike(self, journal: str, keys: Sequence[str]) -> None:
        """Remove entries."""
        _delete(self._open(journal), "key", keys)

    @_in_words
    def add(self, rows: Rows, generation: int) -> None:
        """Add embeddings, then the sightings in one commit."""
        self.embed(generation, rows.table, rows.embeddings)
        t = rows.table
        columns = [t.ids, t.persons, t.cameras, t.times, t.sequences, t.sources, t.added]
        features = [row.astype("<f4").tobytes() for row in rows.features]
        data = pa.table([*(c.tolist() for c in columns), rows.images, features], schema=_SIGHTINGS)
        # Two processes may add the same image: the second one finds its id taken.
        self._open("sightings").merge_insert("id").when_not_matched_insert_all().execute(data)

    @_in_words
    def remove(self, ids: Sequence[str]) -> None:
        """Remove rows first: from then on nobody sees the sightings."""
        _delete(self._open("sightings"), "id", ids)
        for generation in self.generations():
            _delete(self._open(_embeddings(generation)), "id", ids)

    @_in_words
    def table(self) -> Table:
        """Read what is known about the sightings, each id once."""
        found = _read(self._open("sightings"), _META)
        if not found.num_rows:
            return Table.empty()
        columns = []
        for name in _META:
            values = found[name].to_numpy()
            columns.append(
                values.astype(float) if name in ("time", "added") else values.astype(str)
            )
        whole = Table(*columns)
        order = np.lexsort((whole.ids, whole.added))
        _, first = np.unique(whole.ids[order], return_index=True)
        return whole.select(order[np.sort(first)])

    @_in_words
    def fetch(self, ids: Sequence[str], column: Column) -> dict[str, bytes]:
        """Read one column of some rows."""
        table, found = self._open("sightings"), dict[str, bytes]()
        for start in range(0, len(ids), _CHUNK):
            part = _read(table, ["id", column], _among("id", ids[start : start + _CHUNK]))
            found.update(zip(part["id"].to_pylist(), part[column].to_pylist(), strict=True))
        return found

    @_in_words
    def start_generation(self, generation: int, width: int) -> None:
        """Make an empty table of embeddings."""
        schema = pa.schema(
            [
                ("id", pa.string()),
                ("camera", pa.string()),
                ("time", pa.float64()),
                ("vector", pa.list_(pa.float32(), width)),
            ]
        )
        self.drop_generation(generation)
        self._db.create_table(_embeddings(generation), schema=schema)

    @_in_words
    def drop_generation(self, generation: int) -> None:
        """Remove a table of embeddings."""
        if generation in self.generations():
            self._db.drop_table(_embeddings(generation))

    @_in_words
    def generations(self) -> list[int]:
        """List tables of embeddings."""
        prefix = _embeddings("")
        return sorted(int(n.removeprefix(prefix)) for n in self._names() if n.startswith(prefix))

    @_in_words
    def embed(self, generation: int, table: Table, embeddings: Floats32) -> None:
        """Add embeddings with the columns that filters need."""
        target = self._open(_embeddings(generation))
        flat = pa.array(np.ascontiguousarray(embeddings, np.float32).ravel())
        vectors = pa.FixedSizeListArray.from_arrays(flat, embeddings.shape[1])
        columns = [table.ids.tolist(), table.cameras.tolist(), table.times, vectors]
        data = pa.table(dict(zip(target.schema.names, columns, strict=True)))
        target.merge_insert("id").when_not_matched_insert_all().execute(data)

    @_in_words
    def embeddings(
        self, generation: int, width: int
    ) -> Iterator[tuple[NDArray[np.str_], Floats32]]:
        """Yield the table of embeddings as it is stored."""
        found = _read(self._open(_embeddings(generation)), ["id", "vector"])
        batches = []
        for batch in found.to_batches():
            vectors = batch["vector"].flatten().to_numpy(zero_copy_only=False)
            batches.append(
                (batch["id"].to_numpy(zero_copy_only=False).astype(str), vectors.reshape(-1, width))
            )
        return iter(batches)

    @_in_words
    def build_index(self, generation: int) -> None:
        """Build IVF over unquantised vectors, and scalar indexes for the filters.

        Notes
        -----
        Vectors stay whole (no product quantisation): a probed partition is then searched exactly,
        and the recall depends on one number only, the share of partitions that is probed.
        """
        table = self._open(_embeddings(generation))
        flat = IvfFlat(distance_type="l2", num_partitions=_partitions(table.count_rows()))
        table.create_index("vector", config=flat)
        table.create_index("camera", config=Bitmap())
        table.create_index("time", config=BTree())

    @_in_words
    def nearest(
        self, generation: int, query: Floats32, k: int, where: Filter, *, exact: bool
    ) -> tuple[list[str], Floats32]:
        """Search by scan or by index, the filter applied first."""
        table = self._open(_embeddings(generation))
        search = table.search(query.astype(np.float32), vector_column_name="vector")
        search = search.distance_type("l2").limit(k).select(["id", "vector", "_distance"])
        if exact:
            search = search.bypass_vector_index()
        else:
            share = PROBED_FILTERED if where else PROBED
            probes = max(FEW, round(share * _partitions(table.count_rows())))
            search = search.nprobes(probes)
        condition = _condition(where)
        if condition:
            search = search.where(condition, prefilter=True)
        found = search.to_arrow()
        vectors = found["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return found["id"].to_pylist(), vectors.reshape(-1, len(query))

    @_in_words
    def purge(self) -> None:
        """Rewrite every row into new files and delete all versions but the last.

        Notes
        -----
        Compaction alone leaves removed rows in files of which less than a tenth was removed, and
        the record of a removal names what it removed; rewriting gets rid of both.
        """
        for name in self._names():
            column = self._open(name).schema.names[0]
            self._open(name).update(where="TRUE", values_sql={column: column})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # it warns of exactly what we want
                self._open(name).optimize(cleanup_older_than=timedelta(0), delete_unverified=True)

    @_in_words
    def traces(self, needles: Sequence[bytes]) -> list[str]:
        """Search all files of the folder for the bytes (tables, if it is an object store)."""
        if self._local is not None:
            files = sorted(path for path in self._local.rglob("*") if path.is_file())
            return [
                str(p.relative_to(self._local)) for p in files if _holds(p.read_bytes(), needles)
            ]
        held = []
        for name in self._names():
            columns = _read(self._open(name)).columns
            buffers = [b for c in columns for chunk in c.chunks for b in chunk.buffers() if b]
            if any(_holds(buffer.to_pybytes(), needles) for buffer in buffers):
                held.append(name)
        return held

    def verify(self, generations: Collection[int] | None = None) -> list[str]:
        """Read every value of every table."""
        damaged = []
        try:
            names = self._names()
            if generations is not None:
                unused = set(self.generations()) - set(generations)
                names = [name for name in names if name not in map(_embeddings, unused)]
        except (RuntimeError, ValueError, OSError) as error:
            return [str(_explained(self.uri, error))]
        for name in names:
            try:
                for _ in self._open(name).search().limit(10**9).to_batches():
                    pass
            except (RuntimeError, ValueError, OSError, pa.ArrowException) as error:
                damaged.append(f"table {name} is damaged: {str(error).splitlines()[0][:200]}")
        return damaged

    def close(self) -> None:
        """Forget the connection (LanceDB keeps no server)."""
        self._database = None


# Share of the partitions that is searched. Under a filter the nearest that are allowed lie farther
# away, in more partitions (benchmarks/gallery.py measures the recall of both).
PROBED, PROBED_FILTERED = 0.1, 0.25
FEW = 16  # partitions that are searched in any case: a small gallery is searched whole


def _partitions(n_rows: int) -> int:
    return max(1, min(1024, round(n_rows**0.5)))


def _embeddings(generation: int | str) -> str:
    return f"embeddings_{generation}"


def _read(table: Any, columns: list[str] | None = None, condition: str | None = None) -> Any:
    search = table.search()
    if columns is not None:
        search = search.select(columns)
    if condition:
        search = search.where(condition)
    return search.limit(10**9).to_arrow()


def _delete(table: Any, column: str, values: Sequence[str]) -> None:
    for start in range(0, len(values), _CHUNK):
        table.delete(_among(column, values[start : start + _CHUNK]))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _among(column: str, values: Sequence[str]) -> str:
    return f"{column} IN ({', '.join(map(_quoted, values))})"


def _condition(where: Filter) -> str:
    parts = []
    if where.cameras:
        parts.append(_among("camera", where.cameras))
    if where.exclude_cameras:
        parts.append("NOT " + _among("camera", where.exclude_cameras))
    if where.after is not None:
        parts.append(f"time >= {where.after!r}")
    if where.before is not None:
        parts.append(f"time <= {where.before!r}")
    if where.timed:
        parts.append("NOT isnan(time)")
    return " AND ".join(parts)


def _holds(content: bytes, needles: Sequence[bytes]) -> bool:
    return any(needle in content for needle in needles)
