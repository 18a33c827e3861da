"""Search over a cluster: equal to one process, whatever is added, erased, replaced or lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import resight
from resight.datasets.sightings import Sightings
from resight.errors import StoreError
from resight.gallery import Filter, Gallery, Hits
from resight.gallery import parts as parts_of
from resight.gallery.forgetting import forget
from resight.gallery.parts import ChangedError, Parts, assigned
from resight.workers.dask_cluster import ClusterError

SIZE = 8
FILTERS = (
    None,
    Filter(cameras=("camera-1",)),
    Filter(exclude_cameras=("camera-2",)),
    Filter(after=1100.0, before=1250.0),
    Filter(persons=("0001", "0003")),
    Filter(cameras=("camera-3",), persons=("0002",)),
    Filter(after=1e6),
)


class Workers:
    """Workers of this process; those that are lost leave their tasks unanswered."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.holding = False  # whether tasks wait
        self.held: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.asked: list[str] = []

    def workers(self, *, fresh: bool = False) -> list[str]:
        return sorted(self.names)

    def submit(self, function: Callable[..., Any], *arguments: Any, on: str) -> Future[Any]:
        self.asked.append(on)
        future: Future[Any] = Future()
        is_load = function is parts_of.answer and len(arguments) == 1
        if on not in self.names:
            return future
        if self.holding and is_load:
            self.held.append((future, function, arguments))
            return future
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def release(self) -> None:
        for future, function, arguments in self.held:
            future.set_result(function(*arguments))
        self.held.clear()

    def worker_died(self, error: BaseException) -> bool:
        return False


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parts_of, "SIZE", SIZE)
    monkeypatch.setattr(parts_of, "_POLL", 0.05)
    yield
    parts_of._PARTS.clear()
    for engine in parts_of._ENGINES.values():
        engine.close()
    parts_of._ENGINES.clear()


def over(gallery: Gallery, workers: Any, **how: Any) -> Gallery:
    return Gallery.open(gallery.uri, cluster=workers, **how)


def asked(gallery: Gallery) -> Any:
    """Queries that lie between the sightings of a gallery."""
    features = gallery.features(gallery.view.table.ids.tolist()).features
    mixed = 0.5 * (features + features[::-1]) + 0.01
    return gallery.features([])._replace(features=mixed[:5].astype(np.float32))


def assert_equal(gallery: Gallery, other: Gallery, **how: Any) -> None:
    """Compare everything that an answer says, to the last digit."""
    queries = asked(gallery)
    for where in FILTERS:
        for k in (1, 4, 100):
            first, second = (
                one.search_described(queries, k, where, **how) for one in (gallery, other)
            )
            assert first == second
            assert [hits.presence for hits in first] == [hits.presence for hits in second]
            assert not any(hits.missing for hits in second)


@pytest.mark.parametrize("memory_limit", [2**30, 0])
def test_equal_to_one_process(gallery: Gallery, memory_limit: int) -> None:
    workers = Workers("a", "b", "c")
    there = over(gallery, workers, memory_limit=memory_limit)
    assert_equal(gallery, there)
    assert {*workers.asked} == {"a", "b", "c"}
    assert there.info()["search"] == "exact, over a cluster"
    if memory_limit:  # without embeddings in memory distances of tracks are computed anew
        assert_equal(gallery, there, by_track=True)
        assert_equal(gallery, there, rerank="k-reciprocal")
    like = str(gallery.view.table.ids[3])
    assert there.search_like(like, 7) == gallery.search_like(like, 7)


def test_equal_distances_keep_the_order_of_the_table(
    uri: str, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(uri, model())
    same = np.zeros((len(people), 48), np.float32)
    same[:, :4] = 1.0
    described = gallery.features([])._replace(features=same)
    for part in (slice(20, 36), slice(0, 20)):  # numbers in another order than the times of adding
        rows = np.arange(len(people))[part]
        gallery.add(people.select(rows), described=described._replace(features=same[rows]))
    there = over(gallery, Workers("a", "b"))
    query = described._replace(features=same[:1])
    for k in (1, 5, 9, 36):
        assert there.search_described(query, k) == gallery.search_described(query, k)


def test_additions_and_removals_reach_the_parts(
    uri: str, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(uri, model())
    later = np.arange(36) % 9 > 4
    gallery.add(people.select(np.flatnonzero(~later)))
    workers = Workers("a", "b")
    there = over(gallery, workers)
    assert_equal(gallery, there)
    gallery.add(people.select(np.flatnonzero(later)))
    assert_equal(gallery, there)
    gallery.remove(gallery.view.table.ids[[2, 9, 30]].tolist())
    assert_equal(gallery, there)


def test_as_many_sightings_but_others_reach_the_parts(
    uri: str, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(uri, model())
    gallery.add(people.select(np.arange(35)))
    there = over(gallery, Workers("a", "b"))
    assert_equal(gallery, there)
    gallery.remove(gallery.view.table.ids[-1:].tolist())  # the count alone would not tell
    gallery.add(people.select(np.array([35])))
    assert_equal(gallery, there)


def test_another_model_reaches_the_parts(gallery: Gallery, model: Callable[..., Any]) -> None:
    there = over(gallery, Workers("a", "b"))
    assert_equal(gallery, there)
    gallery.rebuild(model(seed=3, width=6))
    assert_equal(gallery, there)
    gallery.undo_rebuild()
    assert_equal(gallery, there)


def test_sightings_without_an_embedding_are_filled_in(
    gallery: Gallery, people: Sightings, model: Callable[..., Any]
) -> None:
    there = over(gallery, Workers("a"), memory_limit=0)
    number, some = gallery.view.manifest.current.number, gallery.view.table.ids[:3].tolist()
    with gallery.engine._change():
        for key in some:
            gallery.engine.ask(f"DELETE FROM embeddings_{number} WHERE id = ?", key)
    assert_equal(gallery, there)


def test_an_erased_person_is_never_returned(gallery: Gallery) -> None:
    there = over(gallery, Workers("a", "b"))
    assert_equal(gallery, there)
    ids = {*gallery.view.table.ids[gallery.view.persons == "0002"].tolist()}
    forget(Gallery.open(gallery.uri), "0002")
    [hits, *_] = there.search_described(asked(gallery), 100)
    assert len(hits) == 33
    assert not ids & {hit.id for hit in hits}
    held = np.concatenate([part.numbers for part in parts_of._PARTS.values()])
    assert len(held) == 33  # nor is anything left in the workers


def test_a_part_with_later_sightings_answers_for_an_earlier_view(
    uri: str, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(uri, model())
    gallery.add(people.select(np.arange(20)))
    view, workers = gallery.view, Workers("a", "b")
    first, second = Parts(gallery.engine, workers), Parts(gallery.engine, workers)  # type: ignore[arg-type]
    queries = view.index.embeddings[:4] + np.float32(0.1)
    expected = first.nearest(view, queries, 6, None)[0]
    gallery.add(people.select(np.arange(20, 36)))
    second.nearest(gallery.view, queries, 6, None)  # workers have all 36 now
    even = np.arange(20) % 2 == 0
    for allowed in (None, even):
        found, missing = first.nearest(view, queries, 6, allowed)
        wanted = view.index.search(queries, 6, allowed)
        assert not missing
        for (rows, distances), (exact_rows, exact) in zip(found, wanted, strict=True):
            assert rows.tolist() == exact_rows.tolist()
            assert distances.tolist() == exact.tolist()
    assert len(expected) == 4
    gallery.remove(view.table.ids[:1].tolist())
    second.nearest(gallery.view, queries, 6, None)
    with pytest.raises(ChangedError):
        first.nearest(view, queries, 6, None)


def settle(there: Gallery) -> None:
    """Wait until all parts are where they belong."""
    deadline = time.monotonic() + 20.0
    while there._parts._moving and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_lost_part_is_said_until_another_worker_has_read_it(gallery: Gallery) -> None:
    workers = Workers("a", "b")
    there = over(gallery, workers)
    complete = there.search_described(asked(gallery), 36)
    assert all(len(hits) == 36 and not hits.missing for hits in complete)
    workers.names.remove("b")
    workers.holding = True
    for _ in range(2):  # it is not read for an answer
        lacking = there.search_described(asked(gallery), 36)
        for hits, whole in zip(lacking, complete, strict=True):
            assert 0 < len(hits) < 36
            n = 36 - len(hits)
            assert hits.missing.startswith(f"{n} sightings were not searched: of 5 parts, those")
            known = {hit.id: hit.raw_distance for hit in whole}
            assert all(known[hit.id] == hit.raw_distance for hit in hits)
    workers.holding = False
    workers.release()
    settle(there)
    found = there.search_described(asked(gallery), 36)
    assert found == complete
    assert not found[0].missing
    workers.names.append("c")  # takes its share over, without a gap
    for _ in range(8):
        assert there.search_described(asked(gallery), 36) == complete
    settle(there)
    workers.asked.clear()
    there.search_described(asked(gallery), 36)
    assert sorted(workers.asked) == ["a", "c"]


def test_lost_parts_are_read_while_nobody_searches(gallery: Gallery) -> None:
    workers = Workers("a", "b")
    there = over(gallery, workers)
    complete = there.search_described(asked(gallery), 36)
    workers.names.remove("b")
    assert there.search_described(asked(gallery), 36)[0].missing
    settle(there)
    assert there.search_described(asked(gallery), 36) == complete


def test_a_worker_lost_while_it_is_asked(gallery: Gallery) -> None:
    workers = Workers("a", "b")
    there = over(gallery, workers)
    whole = there.search_described(asked(gallery), 36)[0]
    submit = workers.submit

    def dying(function: Any, *arguments: Any, on: str) -> Future[Any]:
        if on == "b" and "b" in workers.names:
            workers.names.remove("b")
        return submit(function, *arguments, on=on)

    workers.submit = dying  # type: ignore[method-assign]
    hits = there.search_described(asked(gallery), 36)[0]
    assert hits.missing
    assert 0 < len(hits) < len(whole)


def test_parts_that_a_filter_excludes_are_not_missed(gallery: Gallery) -> None:
    workers = Workers("a", "b")
    there = over(gallery, workers)
    there.search_described(asked(gallery), 3)
    lost = {first for first, name in there._parts._owners.items() if name == "b"}
    layout, times = there._parts._layout, gallery.view.table.times
    kept = np.concatenate([rows for first, (rows, _) in layout.items() if first not in lost])
    one = float(times[kept[~np.isnan(times[kept])][0]])
    workers.names.remove("b")
    workers.holding = True
    [hits, *_] = there.search_described(asked(gallery), 3, Filter(after=one, before=one))
    assert len(hits) == 1
    assert not hits.missing
    workers.holding = False
    workers.release()


def test_workers_without_the_gallery_are_told(gallery: Gallery, tmp_path: Path) -> None:
    there = over(gallery, Workers("a"))
    there._parts._uri = str(tmp_path / "nowhere")
    with pytest.raises(StoreError, match=r"worker a cannot read the gallery: .*PostgreSQL"):
        there.search_described(asked(gallery), 3)


def test_parts_are_shared_out_evenly_and_few_move() -> None:
    parts, workers = (*range(0, 640, 10),), tuple(f"tcp://10.0.0.{n}:1" for n in range(5))
    first = assigned(parts, workers)
    loads = [list(first.values()).count(worker) for worker in workers]
    assert max(loads) == 13
    assert sum(loads) == 64
    assert assigned(parts, workers) == first
    later = assigned(parts, workers[1:])
    moved = sum(first[part] != later[part] for part in parts)
    assert 13 <= moved <= 32  # of the lost worker's 13, and a few to keep it even


@pytest.fixture
def cluster(dask: Any) -> Iterator[tuple[Any, Any]]:
    """Two workers in processes of their own."""
    dask.scheduler()
    first = dask.worker(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    dask.worker(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with resight.cluster(dask.address, timeout=60) as executor:
        dask.wait_until(lambda: len(executor.workers(fresh=True)) == 2)
        yield executor, first


def test_two_dask_workers_give_the_same_and_survive_a_loss(
    cluster: tuple[Any, Any], gallery: Gallery, people: Sightings
) -> None:
    executor, victim = cluster
    there = over(gallery, executor)
    assert_equal(gallery, there)
    queries, done = asked(gallery), threading.Event()
    expected = [{hit.id: hit for hit in one} for one in gallery.search_described(queries, 36)]

    def kill() -> None:
        done.wait(60)
        victim.kill()

    trouble = threading.Thread(target=kill)
    trouble.start()
    marked, since, full = 0, 0.0, 0.0
    for number in range(200):
        if number == 20:
            done.set()
            since = time.monotonic()
        answers: list[Hits] = there.search_described(queries, 36)
        for hits, known in zip(answers, expected, strict=True):
            assert all(replace(hit, rank=known[hit.id].rank) == known[hit.id] for hit in hits)
            assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
            assert hits.missing or len(hits) == 36
        if answers[0].missing:
            marked, full = marked + 1, time.monotonic() - since
    trouble.join()
    assert not answers[0].missing
    assert marked
    assert full < 30.0
    assert_equal(gallery, there)
    # Whoever is erased by another process is in no later answer.
    gone = {*gallery.view.table.ids[gallery.view.persons == "0004"].tolist()}
    forget(Gallery.open(gallery.uri), "0004")
    for hits in there.search_described(queries, 36):
        assert len(hits) == 33
        assert not gone & {hit.id for hit in hits}


def test_no_worker_at_all_is_said(cluster: tuple[Any, Any], gallery: Gallery, dask: Any) -> None:
    executor, _ = cluster
    there = over(gallery, executor)
    there.search_described(asked(gallery), 3)
    for process in dask.processes[1:]:
        process.kill()
    dask.wait_until(lambda: not executor._client.nthreads())
    executor._workers = (0.0, [])
    with pytest.raises(ClusterError, match="no worker"):
        there.search_described(asked(gallery), 3)


def test_the_command_says_the_same(
    cluster: tuple[Any, Any], gallery: Gallery, people: Sightings, capsys: Any
) -> None:
    from resight.cli import main

    query = ["search", gallery.uri, *map(str, people.files()[:2]), "--top", "9", "--json"]
    answers = []
    for more in ([], ["--cluster", cluster[0].address]):
        assert main([*query, "--exclude-camera", "camera-2", *more]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    assert [one["missing"] for one in answers[1]["queries"]] == ["", ""]
    assert main(["search", gallery.uri, query[2], "--cluster", "nowhere"]) == 1
    assert "not the address of a Dask scheduler" in capsys.readouterr().err
