"""Several processes at once: answers are serialised in the store, erasing harms no writer."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.forgetting import forget, needles
from resight.gallery.log import Actor, Entry, append, latest, log_head, log_rows, verify

ROUNDS = 20


@pytest.fixture(scope="module")
def children() -> ForkServerContext:
    """Processes that start quickly: a server that has imported everything forks them."""
    context = multiprocessing.get_context("forkserver")
    heavy = ["psycopg", "resight.gallery.adding", "resight.models.model"]
    context.set_forkserver_preload([*heavy, "resight.learners.euclidean", "killable"])
    return context


def test_contradicting_answers_through_two_processes(
    gallery: Gallery, children: ForkServerContext
) -> None:
    """Of "same" and "different" about one pair, sent at the same moment, one is refused."""
    import killable

    ids = gallery.view.table.ids[gallery.view.persons == ""].tolist()
    pairs = [(ids[i], ids[j]) for i in range(5) for j in range(5, 9)][:ROUNDS]
    barrier = children.Barrier(2)
    answers = []
    for kind in ("same", "different"):
        mine, theirs = children.Pipe(duplex=False)
        process = children.Process(
            target=killable.answer, args=(gallery.uri, kind, pairs, barrier, theirs), daemon=True
        )
        process.start()
        answers.append((process, mine))
    told = [pipe.recv() for _, pipe in answers]
    for process, _ in answers:
        process.join()
    for pair, same, different in zip(pairs, *told, strict=True):
        assert same != different, pair  # exactly one of them was accepted
    for a, b in pairs:  # and what is stored is without contradiction
        assert gallery.view.labels.verdict(a, b) in ("same", "different")
    active = gallery.view.labels.active
    assert len(active) == sum(told[0]) + sum(told[1])


def test_erasing_while_others_write_and_search(
    uri: str, people: Sightings, model: Callable[..., Any], children: ForkServerContext
) -> None:
    """Two writers and two searchers; a person is forgotten again and again. Nothing is lost."""
    import killable

    gallery = Gallery.create(uri, model())
    gallery.add(people)
    stop = children.Event()
    pipes, processes = [], []
    for number in range(4):
        mine, theirs = children.Pipe(duplex=False)
        job = killable.write if number < 2 else killable.search
        arguments = (uri, people, number, stop, theirs)
        processes.append(children.Process(target=job, args=arguments, daemon=True))
        pipes.append(mine)
        processes[-1].start()
    for pipe in pipes:
        assert pipe.recv() is None  # it runs
    victims = people.select(people.persons == "0003")
    erased: list[bytes] = []
    try:
        for number in range(4):
            victims = replace(victims, times=np.full(3, 1e6 + number))
            if number:
                gallery.add(victims)
            view = gallery.view
            ids = view.table.ids[view.persons == "0003"].tolist()
            erased += needles(gallery.engine, ids)[: len(ids)]  # images are those of before
            assert forget(gallery, "0003").sightings == 3
            time.sleep(0.2)
    finally:
        stop.set()
    told = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join()
    assert all(error is None for error, _ in told), told
    acknowledged = {key for _, ids in told[:2] for key in ids}
    assert len(acknowledged) > 20
    assert acknowledged <= set(gallery.view.table.ids.tolist())
    assert gallery.engine.traces(erased) == {}
    report = check(uri)
    assert report.clean, report.problems
    gallery.close()


def test_the_log_does_not_name_what_was_erased_meanwhile(gallery: Gallery) -> None:
    """A search was under way while its person was forgotten; its entry comes afterwards."""
    view = gallery.view
    like = str(view.table.ids[view.persons == "0003"][0])
    other = Gallery.open(gallery.uri)
    me = Actor("me")
    gallery.record(me, "search", query=[like], persons=["0003"])
    stale = gallery.view
    forget(other, "0003")
    for query, person in (([like], "0004"), ([], "0003"), ([], "0004")):
        anchor = str(stale.table.ids[stale.persons == person][0])
        subjects = {"query": query, "persons": {person: anchor}}
        append(gallery.engine, [Entry(me, "search", {}, subjects, 0.0)])
    rows = list(log_rows(gallery.engine))
    assert [row.subjects is None for row in rows] == [True, True, True, True, False]
    assert "0004" in (rows[-1].subjects or "")
    texts = [f"{row.act} {row.subjects}" for row in rows]
    assert not any(like in text or "0003" in text for text in texts)
    assert verify(rows).problems == []
    other.close()


def test_a_lock_is_waited_for_and_then_named(uri: str, model: Callable[..., Any]) -> None:
    gallery = Gallery.create(uri, model())
    other = Gallery.open(uri)
    other.engine.close()
    other.engine.wait = 0.3
    with gallery.engine.transaction():
        start = time.monotonic()
        with pytest.raises(StoreError, match=r"waited 0\.3 s for another"):
            other.retain(3)
        assert 0.2 < time.monotonic() - start < 5
    other.retain(3)
    assert gallery.view.manifest.retention_days == 3


def test_an_error_inside_a_transaction_undoes_all_of_it(gallery: Gallery) -> None:
    before = gallery.engine.version(), gallery.info()
    sighting = str(gallery.view.table.ids[9])

    def change() -> None:
        with gallery.engine.transaction():
            gallery.remove(gallery.view.table.ids[:3].tolist())
            gallery.engine.put({"a": b"b"})
            gallery.teach("same", sighting, sighting)

    with pytest.raises(InputError, match="compare a sighting with itself"):
        change()
    assert (gallery.engine.version(), gallery.info()) == before
    assert len(gallery) == 36


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
def test_the_log_does_not_grow_the_memory(gallery: Gallery, people: Sightings) -> None:
    """The page's way through a gallery: each search is logged and the log is shown."""
    engine = gallery.engine

    def searches(n: int) -> float:
        for _ in range(n):
            gallery.search_like(str(gallery.view.table.ids[0]), 5)
            gallery.record(Actor("me"), "search", query=[str(gallery.view.table.ids[0])])
            latest(engine, 200)
        fields = Path("/proc/self/statm").read_text().split()
        return int(fields[1]) * 4096

    before = searches(150)
    assert searches(450) < 1.05 * before
    assert log_head(engine)[0] == 600
    assert len(latest(engine, 200)) == 200


def test_a_sighting_removed_while_the_gallery_is_read(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view is one state: no row of it has the embedding of whatever was in memory before."""
    before = gallery.view
    other = Gallery.open(gallery.uri)
    other.remove([before.table.ids[0]])  # so that the gallery is read again
    read = gallery.engine.table

    def read_and_lose_one() -> Any:
        table = read()
        if table.ids[0] in other.view.rows:
            other.remove([table.ids[0]])
        return table

    monkeypatch.setattr(gallery.engine, "table", read_and_lose_one)
    view = gallery.view
    assert before.index is not None
    assert view.index is not None
    rows = [before.rows[sighting] for sighting in view.table.ids.tolist()]
    assert len(rows) >= 34
    np.testing.assert_array_equal(view.index.embeddings, before.index.embeddings[rows])
    other.close()


def test_sightings_that_cannot_be_embedded_are_named(gallery: Gallery) -> None:
    ids = gallery.view.table.ids[:2].tolist()
    engine, generation = gallery.engine, gallery.view.manifest.current.number
    with engine.transaction():
        for table in ("features", f"embeddings_{generation}"):
            engine.ask(f"DELETE FROM {table} WHERE id {engine._in}", engine._list(ids))
        engine.ask("UPDATE changes SET number = number + 1")
    with pytest.raises(StoreError, match=r"2 sightings have no embedding.*check"):
        _ = gallery.view


@pytest.mark.skipif(sys.platform != "linux", reason="looks at POSIX locks")
def test_scanning_keeps_the_locks_of_this_process(tmp_path, people, model):
    """Closing any descriptor of a file drops a process's locks on it, SQLite's too."""
    gallery = Gallery.create(tmp_path / "gallery", model())
    gallery.add(people)
    assert gallery.engine.traces([b"not anywhere in there"]) == {}
    # Byte 128 of the shared-memory file says that somebody uses the gallery.
    probe = (
        "import fcntl, sys; "
        "fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)"
    )
    shared = tmp_path / "gallery" / "gallery.sqlite-shm"
    done = subprocess.run([sys.executable, "-c", probe, shared], capture_output=True, text=True)
    assert "BlockingIOError" in done.stderr
    gallery.close()
