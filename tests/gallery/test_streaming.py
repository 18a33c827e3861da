"""Adding through workers: the same gallery whoever describes, whoever dies."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import resight
from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.features.store import FeatureStore
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.workers.executors import RETRIES, local

BATCH = 6


@pytest.fixture
def many(people: Sightings) -> Sightings:
    """Three times as many sightings as files: the same images at other times."""
    copies = people.select(np.tile(np.arange(len(people)), 3))
    return replace(copies, times=np.arange(len(copies), dtype=float))


@pytest.fixture
def counted(tmp_path: Path) -> Callable[..., Any]:
    """Make a model that writes down what it does: ``counted(seconds)``."""
    from toymodel import CountedModel

    def make(seconds: float = 0.0, **options: Any) -> CountedModel:
        model = CountedModel(str(tmp_path / "log"), seconds, **options)
        Path(model.log).unlink(missing_ok=True)
        return model

    return make


@pytest.fixture
def dask(dask: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)  # the model
    return dask


def contents(gallery: Gallery) -> list[tuple[Any, ...]]:
    """Everything that is stored, by id."""
    table, ids = gallery.view.table, sorted(gallery.view.table.ids.tolist())
    images, features = (gallery.engine.fetch(ids, column) for column in ("image", "feature"))
    rows = [gallery.view.rows[sighting] for sighting in ids]
    return [
        (
            i,
            images[i],
            features[i],
            str(table.cameras[r]),
            gallery.view.index.embeddings[r].tolist(),
        )
        for i, r in zip(ids, rows, strict=True)
    ]


def test_local_processes_give_the_same_gallery(
    uri: str, tmp_path: Path, many: Sightings, model: Callable[..., Any]
) -> None:
    alone = Gallery.create(tmp_path / "alone", model())
    alone.add(many)
    gallery = Gallery.create(uri, model())
    told: list[str] = []
    with local(2) as executor:
        result = gallery.add(many, batch_size=BATCH, executor=executor, on_batch=told.extend)
    assert sorted(told) == sorted(result.added) == sorted(gallery.view.table.ids.tolist())
    assert contents(gallery) == contents(alone)


@pytest.mark.cluster
def test_a_cluster_that_loses_a_worker_and_its_scheduler(
    uri: str, many: Sightings, tmp_path: Path, counted: Callable[..., Any], dask: Any
) -> None:
    alone = Gallery.create(tmp_path / "alone", counted())
    alone.add(many)
    slow = counted(0.01)
    gallery = Gallery.create(uri, slow)
    scheduler, first, _ = dask.scheduler(), dask.worker(), dask.worker()
    already = slow.count("d")

    def described() -> int:
        return slow.count("d") - already

    def disturb() -> None:
        dask.wait_until(lambda: described() > len(many) // 4)
        first.kill()
        dask.wait_until(lambda: described() > len(many) // 2)
        scheduler.kill()
        scheduler.wait()
        dask.scheduler()
        dask.worker()

    told: list[str] = []
    with resight.cluster(dask.address, timeout=60) as executor:
        trouble = threading.Thread(target=disturb, daemon=True)
        trouble.start()
        result = gallery.add(many, batch_size=BATCH, executor=executor, on_batch=told.extend)
        trouble.join()
    assert result.failures == []
    assert sorted(told) == sorted(result.added)
    assert contents(gallery) == contents(alone)
    # Done again: what the killed worker had in hand, and what both had when the scheduler went.
    assert described() <= len(many) + (1 + 2 * 2) * BATCH
    assert check(uri).clean


@pytest.mark.cluster
def test_the_same_command_on_a_cluster_adds_only_what_is_missing(
    uri: str, many: Sightings, counted: Callable[..., Any], dask: Any
) -> None:
    model = counted()
    gallery = Gallery.create(uri, model)
    gallery.add(many.select(np.arange(60)))
    before = model.count("d")
    dask.scheduler()
    dask.worker()
    with resight.cluster(dask.address, timeout=60) as executor:
        result = gallery.add(many, batch_size=BATCH, executor=executor)
    assert (len(result.already), len(result.added)) == (60, len(many) - 60)
    assert model.count("d") - before == len(many) - 60


def test_killed_with_its_processes_it_goes_on(
    uri: str, many: Sightings, counted: Callable[..., Any]
) -> None:
    import killable

    model = counted(0.01)
    gallery = Gallery.create(uri, model)
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=killable.add_by_processes, args=(uri, many, BATCH, theirs))
    process.start()
    told: list[str] = []
    for _ in range(8):
        assert mine.poll(60)
        told += mine.recv()
    process.kill()
    process.join()
    while mine.poll(0):
        try:
            told += mine.recv()
        except EOFError:
            break
    time.sleep(1.5)  # orphaned workers end within a second
    seen = set(gallery.view.table.ids.tolist())
    assert set(told) <= seen
    assert len(seen) % BATCH == 0
    before = model.count("d")
    with local(2) as executor:
        gallery.add(many, batch_size=BATCH, executor=executor)
    assert len(gallery) == len(many)
    assert model.count("d") - before == len(many) - len(seen)
    assert check(uri).clean


def test_a_batch_that_kills_workers_is_reported_and_the_rest_is_added(
    tmp_path: Path, many: Sightings, counted: Callable[..., Any]
) -> None:
    Image.fromarray(np.zeros((90, 40, 3), np.uint8)).save(tmp_path / "deadly.png")
    many = many.select(np.arange(4 * BATCH))
    paths = many.paths.astype("U500")
    paths[BATCH] = str(tmp_path / "deadly.png")
    gallery = Gallery.create(tmp_path / "gallery", counted())
    with local(2) as executor:
        result = gallery.add(replace(many, paths=paths), batch_size=BATCH, executor=executor)
    assert [failure.path for failure in result.failures] == paths[BATCH : 2 * BATCH].tolist()
    assert f"failed {1 + RETRIES} times: its worker died" in result.failures[0].reason
    assert len(gallery) == len(result.added) == len(many) - BATCH


def test_an_image_that_cannot_be_described_is_reported_alone(
    uri: str, people: Sightings, model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery = Gallery.create(uri, model())
    refused = Image.open(people.files()[4]).convert("RGB").tobytes()
    descriptor = type(model().descriptor)
    describe = descriptor.describe

    def picky(self: Any, image: np.ndarray) -> np.ndarray:
        if image.tobytes() == refused:
            raise InputError("nothing to see")
        return describe(self, image)

    monkeypatch.setattr(descriptor, "describe", picky)
    result = gallery.add(people)
    assert result.failures == [(4, str(people.paths[4]), "nothing to see")]
    assert len(gallery) == len(people) - 1


def test_the_model_replaced_while_adding(
    uri: str, people: Sightings, model: Callable[..., Any]
) -> None:
    """A model of the same width: nothing but its number tells that embeddings are not its own."""
    gallery, other = Gallery.create(uri, model()), Gallery.open(uri)
    seeds = iter(range(1, 100))
    gallery.add(people, batch_size=12, on_batch=lambda ids: other.rebuild(model(seed=next(seeds))))
    expected = gallery.model.embed(gallery.features(gallery.view.table.ids.tolist()).features)
    assert np.allclose(gallery.view.index.embeddings, expected, atol=1e-5)
    assert check(uri).clean


def test_workers_get_no_learner() -> None:
    import pickle

    from resight import KXQDA
    from resight.models.model import Model

    model = Model(("whos-star", "whos-dagger"), KXQDA(), mirror=True)
    sent = pickle.dumps(model.descriptor)
    assert b"KXQDA" not in sent
    light = pickle.loads(sent)
    assert light.fingerprint == model.descriptor_fingerprint
    picture = np.random.default_rng(0).integers(0, 255, (128, 48, 3), dtype=np.uint8)
    vector = np.asarray(light.describe(picture), np.float32)
    assert np.array_equal(vector, model.describe([picture])[0])


@pytest.mark.parametrize("boxes", [False, True])
def test_vectors_of_a_feature_store_are_not_described_again(
    uri: str, tmp_path: Path, people: Sightings, counted: Callable[..., Any], boxes: bool
) -> None:
    if boxes:
        people = replace(people, boxes=np.tile([-3, 10, 40, 60], (len(people), 1)))
    model = counted()
    alone = Gallery.create(tmp_path / "alone", model)
    alone.add(people)
    store = FeatureStore(tmp_path / "store")
    store.ensure(people.select(np.arange(20)), model.descriptor, executor=local(1))
    already = model.count("d")
    gallery = Gallery.create(uri, model)
    made = model.count("d")
    first = gallery.add(people.select(np.arange(20)), store=store, batch_size=BATCH)
    assert (len(first.added), first.described, model.count("d")) == (20, 0, made)
    assert made - already <= 1  # creating a gallery describes one image for its width
    rest = gallery.add(people, store=store, batch_size=7)  # a batch has images of both kinds
    assert (len(rest.added), rest.described) == (16, 16)
    assert model.count("d") - made == 16
    assert contents(gallery) == contents(alone)


def test_stored_vectors_of_real_descriptors(tmp_path: Path, people: Sightings) -> None:
    from resight.learners.euclidean import Euclidean
    from resight.models.model import Model

    few = people.select(np.arange(4))
    store = FeatureStore(tmp_path / "store")
    features = store.ensure(few, "whos-star+whos-dagger", mirror=True, executor=local(1)).features
    model = Model(("whos-star", "whos-dagger"), Euclidean(), mirror=True, normalize=False)
    model.fit(features, few.persons, few.cameras)
    gallery, alone = (Gallery.create(tmp_path / name, model) for name in ("gallery", "alone"))
    assert gallery.add(few, store=store.folder).described == 0  # as `fit` takes it
    assert alone.add(few).described == 4
    assert contents(gallery) == contents(alone)
    plain = Model(("whos-star", "whos-dagger"), Euclidean(), normalize=False)  # not mirrored
    plain.fit(features, few.persons, few.cameras)
    assert Gallery.create(tmp_path / "plain", plain).add(few, store=store).described == 4


def test_workers_with_other_code_are_refused(model: Callable[..., Any]) -> None:
    from resight.features.describing import Task, describe_crops
    from resight.workers.dask_cluster import ClusterError

    nothing, stripes = Task([], {}, None), model().descriptor
    with pytest.raises(ClusterError, match=r"computes descriptors stripes-1, asked for are x"):
        describe_crops(nothing, stripes, "x", resight.__version__)
    with pytest.raises(ClusterError, match=r"this is resight 0\.0"):
        describe_crops(nothing, stripes, "stripes-1", "0.0")
