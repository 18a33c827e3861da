"""Backup, restore and conversion: the copy answers as the original did, or it is no gallery."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.copying import backup, convert, restore
from resight.gallery.engines import base
from resight.gallery.log import Actor, latest, log_rows
from resight.gallery.users import User, all_users, put_user

V01 = Path(__file__).parents[1] / "data" / "v0.1"


def whole(gallery: Gallery) -> dict[str, Any]:
    """Everything that a gallery holds."""
    engine, table = gallery.engine, gallery.view.table
    ids = table.ids.tolist()
    return {
        "table": [
            list(map(str, column))
            for column in (ids, table.persons, table.cameras, table.times, table.sources)
        ],
        "added": table.added.tolist(),
        "images": engine.fetch(ids, "image"),
        "features": engine.fetch(ids, "feature"),
        "labels": engine.read("labels"),
        "log": list(log_rows(engine)),
        "users": all_users(engine),
        "history": [
            (g.number, g.fingerprint, g.width, g.origin) for g in gallery.view.manifest.history
        ],
        "embeddings": gallery.view.index.embeddings.tolist(),
    }


@pytest.mark.parametrize("into", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_backup_restores_into_either_engine(
    gallery: Gallery,
    people: Sightings,
    model: Callable[..., Any],
    tmp_path: Path,
    into: str,
    request: pytest.FixtureRequest,
) -> None:
    unknown = gallery.view.table.ids[gallery.view.persons == ""].tolist()
    gallery.teach("same", unknown[0], unknown[1], by=Actor("Zoë"))
    gallery.rebuild(model(seed=1, width=5))
    put_user(gallery.engine, User("ann", "teacher", "a hash"))
    file = tmp_path / "gallery.backup"
    assert backup(gallery.uri, file) == 36
    assert sorted(path.name for path in tmp_path.glob("*backup*")) == ["gallery.backup"]
    place = str(tmp_path / "restored")
    if into == "postgres":
        place = (
            f"{request.getfixturevalue('postgres')}#r{gallery.uri[-8:].lower().replace('/', '_')}"
        )
    before = file.read_bytes()
    assert restore(file, place) == 36
    assert file.read_bytes() == before
    copy = Gallery.open(place)
    assert whole(copy) == whole(gallery)
    assert copy.search(people.files()[3], 36) == gallery.search(people.files()[3], 36)
    copy.undo_rebuild()
    assert copy.model.fingerprint == "stripe-model-0-8"
    report = check(place)
    assert (report.clean, report.notes) == (True, [])
    with pytest.raises(StoreError, match="already"):
        restore(file, place)
    with pytest.raises(InputError, match="not written over"):
        backup(gallery.uri, file)
    copy.close()


def test_a_backup_is_one_moment_while_others_write(
    uri: str, people: Sightings, model: Callable[..., Any], tmp_path: Path
) -> None:
    """Batches of three go on being added and taken out: no backup holds a part of one."""
    gallery = Gallery.create(uri, model())
    gallery.add(people.select(np.arange(18)))
    stop = threading.Event()

    def write() -> None:
        other = Gallery.open(uri)
        while not stop.is_set():
            added = other.add(people.select(np.arange(18, 36)), batch_size=3).added
            for start in range(0, len(added), 3):
                other.remove(added[start : start + 3])
        other.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(4):
            n = backup(uri, tmp_path / f"{number}.backup")
            assert n >= 18
            assert n % 3 == 0
    finally:
        stop.set()
        writer.join()
    restore(tmp_path / "3.backup", tmp_path / "copy")
    assert check(str(tmp_path / "copy")).clean


def test_what_is_to_be_erased_does_not_live_on_in_a_backup(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from resight.gallery.forgetting import forget, needles

    ids = gallery.view.table.ids[gallery.view.persons == "0003"].tolist()
    look_for = needles(gallery.engine, ids)
    with monkeypatch.context() as patched:
        patched.setattr(gallery.engine, "remove", lambda ids: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            forget(gallery, "0003")
    backup(gallery.uri, tmp_path / "b")
    content = (tmp_path / "b").read_bytes()
    assert not any(needle in content for needle in look_for)


def test_wrong_files_and_places(
    tmp_path: Path, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(tmp_path / "g", model())
    with pytest.raises(InputError, match="in the gallery itself"):
        backup(tmp_path / "g", tmp_path / "g" / "b")
    with pytest.raises(InputError, match="there is no backup"):
        restore(tmp_path / "none", tmp_path / "new")
    (tmp_path / "text").write_text("no database " * 99)
    with pytest.raises(StoreError, match="not an SQLite database"):
        restore(tmp_path / "text", tmp_path / "new")
    with closing(sqlite3.connect(tmp_path / "foreign")) as foreign:
        foreign.execute("CREATE TABLE x (y)")
    with pytest.raises(StoreError, match="not a gallery"):
        restore(tmp_path / "foreign", tmp_path / "new")
    backup(tmp_path / "g", tmp_path / "b")
    with pytest.raises(StoreError, match="If the file is a backup: resight gallery restore"):
        Gallery.open(tmp_path / "b")
    with pytest.raises(StoreError, match=r"no gallery of resight 0\.1"):
        convert(str(tmp_path / "g"), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    gallery.close()


# ---- what 0.1 wrote


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images, the gallery and the answers of 0.1."""
    pytest.importorskip("lancedb", reason="only the extra 'convert' reads what 0.1 wrote")
    folder = tmp_path_factory.mktemp("old")
    for name in ("flow.tar.xz", "gallery.tar.xz"):
        with tarfile.open(V01 / name) as archive:
            archive.extractall(folder, filter="data")
    return folder / "flow"


def same_answers(gallery: Gallery, old: Path) -> None:
    expected = json.loads((old / "expected.json").read_text())
    for query, hits in expected["searches"].items():
        found = gallery.search(old / query, k=len(hits), same_pictures=True)
        assert [(h.id, h.person, h.camera) for h in found] == [(h[0], *h[3:]) for h in hits]
        raw = [h.raw_distance for h in found]
        assert np.allclose(raw, [h[1] for h in hits], rtol=1e-6, atol=1e-9)
        # What a probability is has changed since: it is that of a unit, and none of a trained one.
        assert all(h.probability is None or 0.0 <= h.probability <= 1.0 for h in found)
    taught = [[e.kind, e.a, e.b] for e in gallery.view.labels.active]
    assert taught == [answer[:3] for answer in expected["answers"]]


def test_a_gallery_of_0_1_is_converted(old: Path, uri: str) -> None:
    with pytest.raises(StoreError, match=r"resight gallery convert .*gallery NEW"):
        Gallery.open(old / "gallery")
    assert convert(str(old / "gallery"), uri) == 42
    gallery = Gallery.open(uri)
    same_answers(gallery, old)
    report = check(uri)
    assert (report.clean, report.notes) == (True, [])
    gallery.close()
    with pytest.raises(StoreError, match="already"):
        convert(str(old / "gallery"), uri)


def test_a_bucket_of_0_1_is_converted(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3server

    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    server, address = s3server.start()
    monkeypatch.setenv("AWS_ENDPOINT", address)
    for file in (old / "gallery").rglob("*"):
        if file.is_file():
            key = f"bucket/town/{file.relative_to(old / 'gallery')}"
            s3server.Handler.objects[key] = file.read_bytes()
    with pytest.raises(InputError, match="resight gallery convert s3://bucket/town NEW"):
        Gallery.open("s3://bucket/town")
    try:
        assert convert("s3://bucket/town", tmp_path / "new") == 42
    finally:
        server.shutdown()
        server.server_close()
    same_answers(Gallery.open(tmp_path / "new"), old)


SLOW = """
import sys, time
from resight.gallery import copying
from resight.gallery.engines.base import Engine
add = Engine.add
def slowly(self, *args):
    add(self, *args)
    print("added", flush=True)
    time.sleep(1)
Engine.add = slowly
copying._BATCH = 4
copying.convert(sys.argv[1], sys.argv[2])
"""


def test_a_killed_conversion_starts_again_and_two_at_once_are_refused(
    old: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(old / "gallery"), uri], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"added\n"
    with monkeypatch.context() as patched:
        patched.setattr(base, "WAIT", 1.0)
        with pytest.raises(StoreError, match="waited 1 s for another"):
            convert(str(old / "gallery"), uri)
    process.kill()
    process.wait()
    process.stdout.close()
    with pytest.raises(StoreError, match="its creation was interrupted"):
        Gallery.open(uri)
    assert convert(str(old / "gallery"), uri) == 42
    gallery = Gallery.open(uri)
    same_answers(gallery, old)
    assert check(uri).clean
    gallery.close()


LAYOUT_1 = """
CREATE SCHEMA old; SET search_path TO old, public;
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
CREATE TABLE embeddings_1 (id text PRIMARY KEY, camera text NOT NULL, time float8,
    vector vector(8) NOT NULL);
"""


@pytest.mark.postgres
def test_the_tables_of_0_1_in_postgresql_are_brought_up_to_date(
    postgres: str, people: Sightings, model: Callable[..., Any]
) -> None:
    import psycopg

    new = Gallery.create(f"{postgres}#new", model())
    new.add(people)
    expected = whole(new)
    columns = "id, person, camera, time, sequence, source, added"
    with psycopg.connect(postgres, autocommit=True) as c:
        c.execute(LAYOUT_1)  # as 0.1 made them
        c.execute("INSERT INTO documents SELECT * FROM new.documents")
        c.execute(
            f"INSERT INTO sightings ({columns}, image, feature) SELECT {columns}, i.content, "
            "f.content FROM new.sightings s JOIN new.images i USING (id) "
            "JOIN new.features f USING (id)"
        )
        c.execute("INSERT INTO embeddings_1 SELECT * FROM new.embeddings_1")
        c.execute(
            "INSERT INTO journal (name, key, content) VALUES ('access', 'k', %s)",
            (json.dumps({"when": 1.7e9, "who": "127.0.0.1", "what": "why", "query": "a and b"}),),
        )
    old = Gallery.open(f"{postgres}#old")
    [logged] = latest(old.engine, 9)
    assert (logged["who"], logged["end"], logged["entry"]["query"]) == (
        "127.0.0.1", 1.7e9, "a and b",
    )  # fmt: skip
    assert old.engine.read("access") == []
    assert {**whole(old), "log": []} == expected
    assert len(old.search(people.files()[0], k=99, same_pictures=True)) == 36
    old.remove(old.view.table.ids[:4].tolist())
    assert check(f"{postgres}#old").clean
    for gallery in (old, new):
        gallery.close()
