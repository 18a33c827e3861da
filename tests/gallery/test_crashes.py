"""SIGKILL at random moments: nothing acknowledged is lost, nothing half-written is seen."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.forgetting import needles, resume

KILLS = 20


@pytest.fixture(scope="module")
def children() -> ForkServerContext:
    """Processes that start quickly: a server that has imported everything forks them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["psycopg", "resight.gallery.gallery", "killable"])
    return context


def run_and_kill(
    children: ForkServerContext, job: Callable[..., None], arguments: tuple[Any, ...], delay: float
) -> list[Any]:
    """Start `job`, kill it `delay` seconds after it has opened the gallery, return what it said."""
    mine, theirs = children.Pipe(duplex=False)
    process = children.Process(target=job, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    assert mine.poll(60), "the child did not open the gallery"
    mine.recv()
    time.sleep(delay)
    process.kill()
    process.join()
    return _rest(mine)


def _rest(pipe: Connection) -> list[Any]:
    said = []
    try:
        while pipe.poll(0):
            said.append(pipe.recv())
    except (EOFError, OSError):
        pass
    return said


@pytest.fixture
def many(people: Sightings) -> Sightings:
    """Ten times as many sightings as files: the same images at other times."""
    copies = people.select(np.tile(np.arange(len(people)), 10))
    return replace(copies, times=np.arange(len(copies), dtype=float))


def test_killed_while_adding(
    uri: str, many: Sightings, model: Callable[..., Any], children: ForkServerContext
) -> None:
    import killable

    gallery = Gallery.create(uri, model())
    acknowledged: set[str] = set()
    cut_short = 0
    rng = random.Random(7)
    for _ in range(KILLS):
        said = run_and_kill(children, killable.add, (uri, many), rng.uniform(0.0, 0.12))
        batches = [batch for batch in said if isinstance(batch, list)]
        cut_short += "done" not in said
        acknowledged.update(*batches)
        seen = set(gallery.view.table.ids.tolist())
        assert acknowledged <= seen  # nothing acknowledged is lost
        assert len(seen) % 3 == 0  # batches are there as a whole or not at all
        report = check(uri)
        assert report.clean, report.problems
        if len(seen) == len(many):
            gallery.remove(sorted(seen))
            acknowledged.clear()
    assert cut_short >= KILLS // 2
    gallery.add(many)  # the same command goes on where it was killed
    assert len(gallery) == len(many)


def test_killed_while_changing_the_model(
    uri: str, people: Sightings, model: Callable[..., Any], children: ForkServerContext
) -> None:
    import killable

    gallery = Gallery.create(uri, model())
    gallery.add(people)
    rng = random.Random(3)
    for attempt in range(5):
        delay = rng.uniform(0.0, 0.4)
        said = run_and_kill(children, killable.rebuild, (uri, 1000 * (attempt + 1)), delay)
        if said:  # the last model told was in use, or one that followed it
            told = int(said[-1].split("-")[2])
            assert int(gallery.model.fingerprint.split("-")[2]) >= told
        expected = gallery.model.embed(gallery.features(gallery.view.table.ids.tolist()).features)
        assert np.allclose(gallery.view.index.embeddings, expected, atol=1e-5)
        report = check(uri)
        assert report.clean, report.problems


def test_a_killed_rebuild_goes_on(
    uri: str,
    people: Sightings,
    tmp_path: Path,
    model: Callable[..., Any],
    children: ForkServerContext,
) -> None:
    """Only what is missing is embedded; searches use the old model alone until the switch."""
    import killable
    from toymodel import CountedModel

    gallery = Gallery.create(uri, model())
    gallery.add(people)
    before = gallery.search(people.files()[3], k=36)
    new = CountedModel(str(tmp_path / "log"), seconds=0.02, seed=1, width=6)
    rng = random.Random(11)
    done, kills = 0, 0
    for _ in range(KILLS):
        said = run_and_kill(children, killable.rebuild_once, (uri, new, 3), rng.uniform(0.05, 0.3))
        if "done" in said or gallery.model.fingerprint == new.fingerprint:
            break
        kills += 1
        assert gallery.search(people.files()[3], k=36) == before
        pending = gallery.info()["model_pending"]
        assert pending in (None, new.fingerprint)
        if pending:
            embedded = len(gallery.engine.embedded(2))
            assert embedded >= done  # nothing that was stored is lost
            done = embedded
        report = check(uri)
        assert report.clean, report.problems
    assert kills >= 3
    gallery.rebuild(new, batch_size=3)
    # Every killed run may have had a batch in hand; each run tries the width with one row.
    assert new.count("e") <= len(people) + 3 * (kills + 1) + 2 * (kills + 2)
    assert gallery.model.fingerprint == new.fingerprint
    assert gallery.info()["model_pending"] is None
    expected = new.embed(gallery.features(gallery.view.table.ids.tolist()).features)
    assert np.allclose(gallery.view.index.embeddings, expected, atol=1e-5)
    assert check(uri).notes == []


def test_killed_while_forgetting(
    uri: str, people: Sightings, model: Callable[..., Any], children: ForkServerContext
) -> None:
    """Whatever was left is finished by the next process; nobody else is touched."""
    import killable

    gallery = Gallery.create(uri, model())
    rng = random.Random(5)
    cut_short = 0
    for _ in range(10):
        gallery.add(people)
        view = gallery.view
        look_for = {
            person: needles(gallery.engine, view.table.ids[view.persons == person].tolist())
            for person in ("0001", "0002", "0003", "0004")
        }
        said = run_and_kill(children, killable.forget_each, (uri,), rng.uniform(0.0, 0.15))
        cut_short += "done" not in said
        gone = set(said) & set(look_for)
        begun = gallery.info()["erasing_unfinished"]
        gone |= {done.person for done in resume(gallery) if done.person}
        left = set(gallery.view.persons.tolist())
        assert not gone & left
        erased = [needle for p in set(look_for) - left for needle in look_for[p]]
        assert gallery.engine.traces(erased) == {}
        assert {"0005", "0006"} <= left
        assert (gallery.view.persons == "").sum() == 18
        report = check(uri)
        assert report.clean, (begun, report.problems)
    assert cut_short >= 3
    gallery.close()


@pytest.mark.postgres
def test_lost_connection_in_the_middle_of_add(
    postgres: str, many: Sightings, model: Callable[..., Any]
) -> None:
    import psycopg

    uri = f"{postgres}#lost"
    gallery = Gallery.create(uri, model())
    acknowledged: list[str] = []

    def cut_off(ids: list[str]) -> None:
        acknowledged.extend(ids)
        if len(acknowledged) == 30:
            with psycopg.connect(postgres) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
                    "pg_backend_pid() AND backend_type = 'client backend'"
                )

    with pytest.raises(StoreError, match="run the same command again"):
        gallery.add(many, batch_size=3, on_batch=cut_off)
    fresh = Gallery.open(uri)
    assert set(fresh.view.table.ids.tolist()) == set(acknowledged)
    result = gallery.add(many)  # the same object connects again
    assert len(result.already) == 30
    assert len(fresh) == len(many)
    assert check(uri).clean


def test_no_server(model: Callable[..., Any]) -> None:
    with pytest.raises(StoreError, match="no connection to the database") as caught:
        Gallery.open("postgresql://nobody:secret@127.0.0.1:9/none?connect_timeout=2")
    assert "secret" not in str(caught.value)


def test_damaged_files_are_reported(
    tmp_path: Path, people: Sightings, model: Callable[..., Any]
) -> None:
    uri = str(tmp_path / "gallery")
    gallery = Gallery.create(uri, model())
    gallery.add(people)
    gallery.close()
    data = tmp_path / "gallery" / "gallery.sqlite"
    content = data.read_bytes()
    data.write_bytes(content[: len(content) // 2])
    report = check(uri)
    assert not report.clean
    data.write_bytes(content[:32768] + bytes(len(content) - 32768))
    with pytest.raises(StoreError, match="damaged"):
        len(Gallery.open(uri))


def test_flipped_bits_are_found(
    tmp_path: Path, people: Sightings, model: Callable[..., Any]
) -> None:
    uri = str(tmp_path / "gallery")
    gallery = Gallery.create(uri, model())
    gallery.add(people)
    table = gallery.view.table.select(np.arange(3))
    gallery.engine.start_generation(1, 8)
    gallery.engine.embed(1, table.ids, np.zeros((3, 8), np.float32))
    report = check(uri)
    assert "do not belong to their model" in report.problems[0]
    nothing = np.full((1, 8), np.nan, "<f4").tobytes()
    gallery.engine.ask("UPDATE embeddings_1 SET vector = ? WHERE id = ?", nothing, table.ids[0])
    gallery.engine.ask("DELETE FROM embeddings_1 WHERE id <> ?", table.ids[0])
    assert "1 of 1 embeddings looked at do not belong" in check(uri).problems[0]
    gallery.rebuild(gallery.model)
    assert check(uri).clean
