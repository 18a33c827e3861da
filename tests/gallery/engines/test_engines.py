"""What every engine promises, without any gallery above it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from resight.errors import InputError, StoreError
from resight.gallery.engines import connect
from resight.gallery.engines.base import Engine, Rows, Table
from resight.gallery.filters import Filter

CAMERAS = np.array(
    ["plain", "it's", 'quo"te', "100%", "back\\slash", "naïve; DROP TABLE sightings"]
)


def rows(n: int = 24, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    text = np.full(n, "")
    times = np.arange(n, dtype=float)
    times[::5] = np.nan
    ids = np.array([f"s{seed}-{i:03d}" for i in range(n)])
    table = Table(ids, text, CAMERAS[np.arange(n) % 6], times, text, text, np.full(n, float(seed)))
    images = [rng.bytes(400) for _ in range(n)]
    return Rows(
        table,
        images,
        rng.normal(size=(n, 7)).astype(np.float32),
        rng.normal(size=(n, 5)).astype(np.float32),
    )


@pytest.fixture
def engine(uri: str) -> Iterator[Engine]:
    made = connect(uri)
    assert not made.exists()
    made.create()
    made.start_generation(1, 5)
    yield made
    made.close()


def test_embeddings_that_are_not_finite_are_refused(engine: Engine) -> None:
    given = rows()
    given.embeddings[3, 1] = np.inf
    with pytest.raises(InputError, match="NaN or infinite"):
        engine.add(given, 1)
    assert not len(engine.table())


def test_documents(engine: Engine) -> None:
    assert engine.exists()
    assert engine.get("a'b") is None
    engine.put({"a'b": b"\x00\xff", "a/c": b"", "b": b"1"})
    engine.put({"b": b"2"})
    assert [engine.get(name) for name in ("a'b", "a/c", "b")] == [b"\x00\xff", b"", b"2"]
    assert engine.names("a") == ["a'b", "a/c"]
    engine.drop(["a'b", "missing"])
    assert engine.names("") == ["a/c", "b"]


def test_journals_keep_the_order(engine: Engine) -> None:
    for i in range(12):
        engine.append("labels", f"k{i}", f"text {i} 'quoted' é")
    engine.append("access", "x", "other")
    engine.amend("labels", ["k3", "k7"], {})
    kept = [i for i in range(12) if i not in (3, 7)]
    assert engine.read("labels") == [(f"k{i}", f"text {i} 'quoted' é") for i in kept]
    assert engine.read("access") == [("x", "other")]


def test_every_change_changes_the_version(engine: Engine) -> None:
    seen = [engine.version()]
    assert engine.version() == seen[0]
    for change in (
        lambda: engine.put({"a": b"1"}),
        lambda: engine.append("labels", "k", "t"),
        lambda: engine.add(rows(), 1),
        lambda: engine.remove(["s0-000"]),
    ):
        change()
        seen.append(engine.version())
        assert seen[-1] != seen[-2]


def test_rows_come_back_as_they_were_given(engine: Engine) -> None:
    given = rows()
    engine.add(given, 1)
    engine.add(given, 1)  # again: nothing happens
    engine.add(rows(6, seed=1), 1)
    table = engine.table()
    assert table.ids.tolist() == [*given.table.ids.tolist(), *rows(6, seed=1).table.ids.tolist()]
    assert table.cameras.tolist()[:6] == CAMERAS.tolist()
    assert np.array_equal(table.times[:24], given.table.times, equal_nan=True)
    ids = given.table.ids.tolist()
    assert [engine.fetch(ids, "image")[key] for key in ids] == given.images
    feature = np.frombuffer(engine.fetch(ids[3:4], "feature")[ids[3]], "<f4")
    assert np.array_equal(feature, given.features[3])
    found = {
        key: v for keys, vs in engine.embeddings(1, 5) for key, v in zip(keys, vs, strict=True)
    }
    assert all(np.array_equal(found[k], e) for k, e in zip(ids, given.embeddings, strict=True))


@pytest.mark.parametrize(
    "where",
    [
        Filter(),
        Filter(cameras=("it's", "100%")),
        Filter(exclude_cameras=('quo"te', "naïve; DROP TABLE sightings", "back\\slash")),
        Filter(after=3.0, before=17.0),
        Filter(cameras=("plain",), after=-1e9),
        Filter(before=-5.0),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_nearest_is_the_definition(engine: Engine, where: Filter, exact: bool) -> None:
    given = rows(120)
    engine.add(given, 1)
    if not exact and engine.approximate:
        engine.build_index(1)
    elif not exact:
        with pytest.raises(InputError, match="SQLite has no approximate index"):
            engine.build_index(1)
    query = np.zeros(5, np.float32)
    allowed = where.mask(given.table.cameras, given.table.times, given.table.persons)
    order = np.argsort((given.embeddings**2).sum(axis=1))
    expected = [given.table.ids[row] for row in order if allowed[row]][:7]
    ids, vectors = engine.nearest(1, query, 7, where, exact=exact)
    assert ids == expected
    assert vectors.shape == (len(expected), 5)


def test_removed_rows_leave_every_generation(engine: Engine) -> None:
    given = rows()
    engine.add(given, 1)
    engine.start_generation(2, 3)
    engine.embed(2, given.table.ids, np.ones((24, 3), np.float32))
    assert engine.generations() == [1, 2]
    pieces = [image[100:150] for image in given.images[:4]]
    assert set().union(*engine.traces(pieces).values()) == set(pieces)
    engine.remove(given.table.ids[:4].tolist())
    for generation, width in ((1, 5), (2, 3)):
        left = [key for keys, _ in engine.embeddings(generation, width) for key in keys.tolist()]
        assert sorted(left) == given.table.ids[4:].tolist()
    assert engine.purge(pieces) == {}
    kept = given.images[5][100:150]
    assert set().union(*engine.traces([kept]).values()) == {kept}
    engine.start_generation(2, 4)  # a leftover is replaced
    assert list(engine.embeddings(2, 4)) == [] or all(
        len(k) == 0 for k, _ in engine.embeddings(2, 4)
    )
    engine.drop_generation(2)
    assert engine.generations() == [1]
    assert engine.verify() == []


def test_addresses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="after '#'"):
        connect("postgresql://localhost/x#Bad-Name")
    with pytest.raises(InputError, match="cannot keep a gallery"):
        connect("http://example.org")
    assert not connect(tmp_path / "nothing").exists()
    assert not (tmp_path / "nothing").exists()  # looking does not create


@pytest.mark.postgres
def test_a_role_with_one_schema_is_enough(postgres: str) -> None:
    """As docs/clusters.md tells an administrator."""
    import psycopg

    database = postgres.replace("/postgres?", "/surveys?")
    with psycopg.connect(postgres, autocommit=True) as administrator:
        administrator.execute("CREATE ROLE resight LOGIN")
        administrator.execute("CREATE DATABASE surveys")
    with psycopg.connect(database, autocommit=True) as administrator:
        administrator.execute("CREATE EXTENSION vector SCHEMA public")
        administrator.execute("CREATE SCHEMA town AUTHORIZATION resight")
    engine = connect(database.replace("//postgres:@", "//resight@") + "#town")
    engine.create()
    engine.start_generation(1, 5)
    engine.add(rows(), 1)
    engine.build_index(1)
    assert engine.purge([b"nothing like that"]) == {}
    assert len(engine.table()) == 24
    engine.close()
    with pytest.raises(StoreError, match="permission denied"):
        connect(database.replace("//postgres:@", "//resight@") + "#other").create()
