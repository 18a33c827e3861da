"""LanceDB: a gallery in a folder (or on an object store), with nothing to start.

Lance tables are versioned: a write adds files and then commits a new version in one step, so a
killed process leaves the last version as it was. A sighting's embedding is written before its
row: the row is the commit point, and an embedding without a row is never shown.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta

import numpy as np
import pyarrow as pa
from lancedb.index import Bitmap, BTree, IvfFlat
from numpy.typing import NDArray

from resight.gallery.engines._lance_documents import LanceDocuments
from resight.gallery.engines._lance_tables import (
    CHUNK,
    SIGHTINGS,
    among,
    condition,
    delete,
    explained,
    holds,
    in_words,
    read,
)
from resight.gallery.engines.base import Column, Floats32, Rows, Table
from resight.gallery.filters import Filter

_META = [name for name in SIGHTINGS.names if name not in ("image", "feature")]

# Share of the partitions that is searched. Under a filter the nearest that are allowed lie farther
# away, in more partitions (benchmarks/gallery.py measures the recall of both).
PROBED, PROBED_FILTERED = 0.15, 0.25
FEW = 16  # partitions that are searched in any case: a small gallery is searched whole


class LanceEngine(LanceDocuments):
    """A gallery as Lance tables under one folder or object store prefix."""

    @in_words
    def add(self, rows: Rows, generation: int) -> None:
        """Add embeddings, then the sightings in one commit."""
        self.embed(generation, rows.table, rows.embeddings)
        t = rows.table
        columns = [t.ids, t.persons, t.cameras, t.times, t.sequences, t.sources, t.added]
        features = [row.astype("<f4").tobytes() for row in rows.features]
        data = pa.table([*(c.tolist() for c in columns), rows.images, features], schema=SIGHTINGS)
        # Two processes may add the same image: the second one finds its id taken.
        self._open("sightings").merge_insert("id").when_not_matched_insert_all().execute(data)

    @in_words
    def remove(self, ids: Sequence[str]) -> None:
        """Remove rows first: from then on nobody sees the sightings."""
        delete(self._open("sightings"), "id", ids)
        for generation in self.generations():
            delete(self._open(_embeddings(generation)), "id", ids)

    @in_words
    def table(self) -> Table:
        """Read what is known about the sightings, each id once."""
        found = read(self._open("sightings"), _META)
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

    @in_words
    def fetch(self, ids: Sequence[str], column: Column) -> dict[str, bytes]:
        """Read one column of some rows."""
        table, found = self._open("sightings"), dict[str, bytes]()
        for start in range(0, len(ids), CHUNK):
            part = read(table, ["id", column], among("id", ids[start : start + CHUNK]))
            found.update(zip(part["id"].to_pylist(), part[column].to_pylist(), strict=True))
        return found

    @in_words
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

    @in_words
    def drop_generation(self, generation: int) -> None:
        """Remove a table of embeddings."""
        if generation in self.generations():
            self._db.drop_table(_embeddings(generation))

    @in_words
    def generations(self) -> list[int]:
        """List tables of embeddings."""
        prefix = _embeddings("")
        return sorted(int(n.removeprefix(prefix)) for n in self._names() if n.startswith(prefix))

    @in_words
    def embed(self, generation: int, table: Table, embeddings: Floats32) -> None:
        """Add embeddings with the columns that filters need."""
        target = self._open(_embeddings(generation))
        flat = pa.array(np.ascontiguousarray(embeddings, np.float32).ravel())
        vectors = pa.FixedSizeListArray.from_arrays(flat, embeddings.shape[1])
        columns = [table.ids.tolist(), table.cameras.tolist(), table.times, vectors]
        data = pa.table(dict(zip(target.schema.names, columns, strict=True)))
        target.merge_insert("id").when_not_matched_insert_all().execute(data)

    @in_words
    def embeddings(
        self, generation: int, width: int
    ) -> Iterator[tuple[NDArray[np.str_], Floats32]]:
        """Yield the table of embeddings as it is stored."""
        found = read(self._open(_embeddings(generation)), ["id", "vector"])
        batches = []
        for batch in found.to_batches():
            vectors = batch["vector"].flatten().to_numpy(zero_copy_only=False)
            batches.append(
                (batch["id"].to_numpy(zero_copy_only=False).astype(str), vectors.reshape(-1, width))
            )
        return iter(batches)

    @in_words
    def embedded(self, generation: int) -> set[str]:
        """Read the ids only."""
        return set(read(self._open(_embeddings(generation)), ["id"])["id"].to_pylist())

    @in_words
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

    @in_words
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
        allowed = condition(where)
        if allowed:
            search = search.where(allowed, prefilter=True)
        found = search.to_arrow()
        vectors = found["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return found["id"].to_pylist(), vectors.reshape(-1, len(query))

    @in_words
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

    @in_words
    def traces(self, needles: Sequence[bytes]) -> list[str]:
        """Search all files of the folder for the bytes (tables, if it is an object store)."""
        if self._local is not None:
            files = sorted(path for path in self._local.rglob("*") if path.is_file())
            return [
                str(p.relative_to(self._local)) for p in files if holds(p.read_bytes(), needles)
            ]
        held = []
        for name in self._names():
            columns = read(self._open(name)).columns
            buffers = [b for c in columns for chunk in c.chunks for b in chunk.buffers() if b]
            if any(holds(buffer.to_pybytes(), needles) for buffer in buffers):
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
            return [str(explained(self.uri, error))]
        for name in names:
            try:
                for _ in self._open(name).search().limit(10**9).to_batches():
                    pass
            except (RuntimeError, ValueError, OSError, pa.ArrowException) as error:
                damaged.append(f"table {name} is damaged: {str(error).splitlines()[0][:200]}")
        return damaged


def _partitions(n_rows: int) -> int:
    return max(1, min(1024, round(n_rows**0.5)))


def _embeddings(generation: int | str) -> str:
    return f"embeddings_{generation}"
