"""PostgreSQL with pgvector: a gallery for many users at once.

Every change is one transaction, so a lost connection or a killed process leaves nothing half done.
All tables live in one schema, named by the part of the URI after ``#`` (default ``resight``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql

from resight.errors import StoreError
from resight.gallery.engines._postgres_documents import PostgresDocuments
from resight.gallery.engines._postgres_tables import (
    META,
    about,
    condition,
    insert_embeddings,
    lists,
)
from resight.gallery.engines.base import Column, Floats32, Rows, Table
from resight.gallery.filters import Filter


class PostgresEngine(PostgresDocuments):
    """A gallery as tables of one schema of a PostgreSQL database."""

    def add(self, rows: Rows, generation: int) -> None:
        """Add sightings and embeddings in one transaction."""
        t = rows.table
        features = [row.astype("<f4").tobytes() for row in rows.features]
        values = zip(*lists(t), rows.images, features, strict=True)
        with self._change() as c:
            c.cursor().executemany(
                f"INSERT INTO sightings ({META}, image, feature) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING",
                list(values),
            )
            insert_embeddings(c, generation, t, rows.embeddings)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove rows everywhere in one transaction."""
        generations = self.generations()
        with self._change() as c:
            c.execute("DELETE FROM sightings WHERE id = ANY(%s)", (list(ids),))
            for generation in generations:
                c.execute(about("DELETE FROM {} WHERE id = ANY(%s)", generation), (list(ids),))

    def table(self) -> Table:
        """Read what is known about the sightings."""
        with self._transaction() as c:
            rows = c.execute(f"SELECT {META} FROM sightings ORDER BY added, id").fetchall()
        if not rows:
            return Table.empty()
        columns = list(zip(*rows, strict=True))
        times = np.array([np.nan if time is None else time for time in columns[3]], float)
        ids, persons, cameras, sequences, sources = (
            np.array(columns[i], str) for i in (0, 1, 2, 4, 5)
        )
        added = np.array(columns[6], float)
        return Table(ids, persons, cameras, times, sequences, sources, added)

    def fetch(self, ids: Sequence[str], column: Column) -> dict[str, bytes]:
        """Read one column of some rows."""
        query = sql.SQL("SELECT id, {} FROM sightings WHERE id = ANY(%s)")
        with self._transaction() as c:
            rows = c.execute(query.format(sql.Identifier(column)), (list(ids),)).fetchall()
        return {key: bytes(value) for key, value in rows}

    def start_generation(self, generation: int, width: int) -> None:
        """Make an empty table of embeddings."""
        with self._transaction() as c:
            c.execute(about("DROP TABLE IF EXISTS {}", generation))
            columns = "(id text PRIMARY KEY, camera text NOT NULL, time float8, "
            columns += f"vector vector({width}) NOT NULL)"
            c.execute(about("CREATE TABLE {} " + columns, generation))

    def drop_generation(self, generation: int) -> None:
        """Remove a table of embeddings."""
        with self._change() as c:
            c.execute(about("DROP TABLE IF EXISTS {}", generation))

    def generations(self) -> list[int]:
        """List tables of embeddings."""
        query = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
        query += " AND tablename LIKE 'embeddings\\_%%'"
        with self._transaction() as c:
            return sorted(
                int(n.split("_")[1]) for (n,) in c.execute(query, (self._schema,)).fetchall()
            )

    def embed(self, generation: int, table: Table, embeddings: Floats32) -> None:
        """Store embeddings of sightings: derived, so that nobody need read the gallery again."""
        with self._transaction() as c:
            insert_embeddings(c, generation, table, embeddings)

    def embeddings(
        self, generation: int, width: int
    ) -> Iterator[tuple[NDArray[np.str_], Floats32]]:
        """Yield the table of embeddings in batches."""
        batches = []
        with self._transaction() as c, c.cursor("embeddings", binary=True) as cursor:
            cursor.execute(about("SELECT id, vector FROM {}", generation))
            while rows := cursor.fetchmany(20_000):
                ids, vectors = zip(*rows, strict=True)
                batches.append((np.array(ids, str), np.stack([v.to_numpy() for v in vectors])))
        return iter(batches)

    def embedded(self, generation: int) -> set[str]:
        """Read the ids only."""
        with self._transaction() as c:
            return {key for (key,) in c.execute(about("SELECT id FROM {}", generation)).fetchall()}

    def build_index(self, generation: int) -> None:
        """Build pgvector's HNSW index and an index for the filters."""
        with self._change() as c:
            c.execute("SET LOCAL maintenance_work_mem = '1GB'")
            c.execute(about("CREATE INDEX ON {} USING hnsw (vector vector_l2_ops)", generation))
            c.execute(about("CREATE INDEX ON {} (camera, time)", generation))

    def nearest(
        self, generation: int, query: Floats32, k: int, where: Filter, *, exact: bool
    ) -> tuple[list[str], Floats32]:
        """Search by scan or by index; the index goes on until the filter has let k through."""
        allowed, values = condition(where)
        search = about(
            f"SELECT id, vector FROM {{}} {allowed} ORDER BY vector <-> %s LIMIT %s", generation
        )
        with self._transaction() as c:
            if exact:
                c.execute("SET LOCAL enable_indexscan = off")
            else:
                c.execute("SET LOCAL hnsw.iterative_scan = strict_order")
                c.execute(f"SET LOCAL hnsw.ef_search = {max(200, min(1000, 4 * int(k)))}")
            rows = c.execute(search, (*values, query.astype(np.float32), int(k))).fetchall()
        vectors = [vector.to_numpy() for _, vector in rows]
        return [key for key, _ in rows], np.array(vectors, np.float32).reshape(-1, len(query))

    def purge(self) -> None:
        """Rewrite the tables without dead rows and let the write-ahead log turn over."""
        tables = ["documents", "journal", "sightings"]
        with self._lock:
            try:
                connection = self._connected()
                for name in [*tables, *(f"embeddings_{g}" for g in self.generations())]:
                    connection.execute(sql.SQL("VACUUM FULL {}").format(sql.Identifier(name)))
            except psycopg.Error as error:
                raise self._explained(error) from error

    def traces(self, needles: Sequence[bytes]) -> list[str]:
        """Search every binary and text value of the tables."""
        places = [("documents", "content"), ("sightings", "image"), ("sightings", "feature")]
        found = []
        with self._transaction() as c:
            for table, column in places:
                form = sql.SQL("SELECT 1 FROM {} WHERE position(%s::bytea IN {}) > 0 LIMIT 1")
                query = form.format(sql.Identifier(table), sql.Identifier(column))
                if any(c.execute(query, (needle,)).fetchone() for needle in needles):
                    found.append(f"{table}.{column}")
        return found

    def verify(self, generations: Collection[int] | None = None) -> list[str]:
        """Read every value of every table."""
        damaged = []
        used = self.generations() if generations is None else generations
        names = [
            "documents",
            "journal",
            "sightings",
            *(f"embeddings_{g}" for g in used),
        ]
        for name in names:
            try:
                with self._transaction() as c, c.cursor("verify") as cursor:
                    cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)))
                    while cursor.fetchmany(100):
                        pass
            except StoreError as error:
                damaged.append(f"table {name}: {error}")
        return damaged
