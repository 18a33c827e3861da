"""What the PostgreSQL engine writes and asks: tables, statements, conditions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from resight.gallery.engines.base import Floats32, Table
from resight.gallery.filters import Filter

TABLES = """
CREATE TABLE documents (name text PRIMARY KEY, content bytea NOT NULL);
CREATE TABLE journal (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL, key text NOT NULL, content text NOT NULL);
CREATE TABLE sightings (
    number bigint GENERATED ALWAYS AS IDENTITY, id text PRIMARY KEY, person text NOT NULL,
    camera text NOT NULL, time float8, sequence text NOT NULL, source text NOT NULL,
    added float8 NOT NULL, image bytea NOT NULL, feature bytea NOT NULL);
CREATE TABLE changes (number bigint NOT NULL);
INSERT INTO changes VALUES (0);
"""
META = "id, person, camera, time, sequence, source, added"


def about(statement: str, generation: int) -> sql.Composed:
    """Put the name of a table of embeddings into a statement."""
    return sql.SQL(statement).format(sql.Identifier(f"embeddings_{generation}"))  # type: ignore[arg-type]


def lists(table: Table) -> list[list[Any]]:
    """Return the columns of a table as PostgreSQL takes them; a time that is not known is NULL."""
    times = [None if np.isnan(time) else float(time) for time in table.times]
    texts = [a.tolist() for a in (table.ids, table.persons, table.cameras)]
    return [*texts, times, table.sequences.tolist(), table.sources.tolist(), table.added.tolist()]


def insert_embeddings(
    connection: psycopg.Connection[Any], generation: int, table: Table, embeddings: Floats32
) -> None:
    """Store embeddings; ids that have one keep it."""
    ids, _, cameras, times, *_ = lists(table)
    statement = "INSERT INTO {} VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO NOTHING"
    rows = list(zip(ids, cameras, times, np.asarray(embeddings, np.float32), strict=True))
    connection.cursor().executemany(about(statement, generation), rows)


def condition(where: Filter) -> tuple[str, list[Any]]:
    """Write a filter as SQL, with the values for its places."""
    parts: list[str] = []
    values: list[Any] = []
    for text, value in (
        ("camera = ANY(%s)", list(where.cameras)),
        ("NOT camera = ANY(%s)", list(where.exclude_cameras)),
        ("time >= %s", where.after),
        ("time <= %s", where.before),
    ):
        if value is not None and value != []:
            parts.append(text)
            values.append(value)
    return ("WHERE " + " AND ".join(parts) if parts else ""), values


def without_password(uri: str) -> str:
    """Return an address that may be shown."""
    return re.sub(r"(//[^:/@]*):[^@/]*@", r"\1:***@", uri)
