"""Several images as one query, and tracks as one hit, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from toymodel import StripeModel

from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError
from resight.evaluation.calibration import Calibration
from resight.gallery import Filter, Gallery
from resight.gallery.confidence import Asked, judge
from resight.gallery.engines.base import Rows, Table
from resight.gallery.view import View
from resight.images import read


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Sightings:
    """Eight people, three crops in each of two cameras, as tracks; the last person has none."""
    drawn = draw_cameras(tmp_path_factory.mktemp("walks"), 8, images_per_camera=3, seed=4)
    tracks = np.where(drawn.persons == "0008", "", np.char.add("walk-", drawn.persons))
    return replace(drawn, persons=np.full(len(drawn), ""), sequences=tracks)


@pytest.fixture
def tracked(uri: str, walks: Sightings) -> Iterator[Gallery]:
    made = Gallery.create(uri, StripeModel())
    made.add(walks)
    yield made
    made.close()


def brute_force(gallery: Gallery, query: np.ndarray, cameras: tuple[str, ...]) -> list:
    """Mean distances of tracks, best first: (track, camera, mean, nearest sighting)."""
    view = gallery.view
    groups: dict[tuple[str, ...], list[tuple[float, str]]] = {}
    for row, sighting in enumerate(view.table.ids.tolist()):
        camera, track = str(view.table.cameras[row]), str(view.table.sequences[row])
        if camera in cameras:
            distance = float(((view.index.embeddings[row].astype(float) - query) ** 2).sum())
            key = (camera, track) if track else (camera, "", sighting)
            groups.setdefault(key, []).append((distance, sighting))
    means = [
        (key[1], key[0], np.mean([d for d, _ in found]), min(found)[1])
        for key, found in groups.items()
    ]
    return sorted(means, key=lambda one: one[2])


def test_tracks_are_ranked_by_their_mean(tracked: Gallery, walks: Sightings) -> None:
    large = Gallery.open(tracked.uri, memory_limit=0)  # by the engine, without all in memory
    both = ("camera-1", "camera-2")
    for file, cameras, k in zip(
        walks.files()[::7], [both, both[1:]] * 4, [1, 4, 100] * 3, strict=False
    ):
        query = tracked.model.embed(tracked.describe([read(file)]).features)[0]
        expected = brute_force(tracked, query, cameras)[:k]
        for gallery in (tracked, large):
            ways = {"by_track": True, "same_pictures": True}
            hits = gallery.search(file, k, cameras=list(cameras), **ways)
            found = [(hit.track, hit.camera, pytest.approx(hit.distance), hit.id) for hit in hits]
            assert found == expected
            assert [hit.rank for hit in hits] == list(range(1, len(expected) + 1))
    large.close()


def test_a_track_far_apart_in_itself_makes_the_search_go_deeper(uri: str) -> None:
    """The nearest sightings all belong to tracks that are far in the mean."""
    rng = np.random.default_rng(0)
    n = 60
    vectors = rng.normal(0, 50, (2 * n + 1, 48)).astype(np.float32)
    vectors[:n] *= 0.01  # one near and one far sighting in each track ...
    vectors[-1] = 3  # ... and one alone, farther than the near ones
    tracks = np.array([f"t{i % n}" for i in range(2 * n)] + [""])
    gallery = Gallery.create(uri, StripeModel(width=48))
    view = add_vectors(gallery, vectors, tracks)
    zero = gallery.describe([np.zeros((64, 32, 3), np.uint8)])._replace(
        features=np.zeros((1, 48), np.float32)
    )
    [hits] = gallery.search_described(zero, 1, by_track=True)
    assert hits[0].id == str(view.table.ids[-1])
    gallery.close()


def add_vectors(gallery: Gallery, vectors: np.ndarray, tracks: np.ndarray) -> View:
    """Store rows with these descriptors; their images do not matter."""
    n = len(vectors)
    ids = np.array([f"{i:024d}" for i in range(n)])
    table = Table(
        ids, np.full(n, ""), np.full(n, "c"), np.full(n, np.nan), tracks, ids, np.zeros(n)
    )
    embedded = gallery.model.embed(vectors).astype(np.float32)
    gallery.engine.add(Rows(table, [b"x"] * n, vectors, embedded), 1)
    return gallery.view


def test_several_images_rank_as_the_mean_of_their_distances(
    tracked: Gallery, walks: Sightings
) -> None:
    files = walks.files()[:3]
    each = [{hit.id: hit.distance for hit in tracked.search(file, 48)} for file in files]
    hits = tracked.search(files, 48)
    means = [np.mean([distances[hit.id] for distances in each]) for hit in hits]
    assert means == sorted(means)
    # ... from which the distance differs by the spread of the query itself
    assert np.ptp(np.array(means) - [hit.distance for hit in hits]) < 1e-4
    assert tracked.search_many(files, 48, together=True) == [hits]
    assert tracked.search([files[0]], 48) == tracked.search(files[0], 48)
    with pytest.raises(InputError, match="no image to search for"):
        tracked.search([])


def test_like_a_whole_track(tracked: Gallery) -> None:
    view = tracked.view
    row = int(np.flatnonzero(view.table.sequences == "walk-0003")[0])
    mates = view.table.ids[view.tracks == view.tracks[row]].tolist()
    assert len(mates) == 3
    [hits] = tracked.search_described(tracked.features(mates), 100, like=mates, together=True)
    assert len(hits) == 48 - 3
    assert not {hit.id for hit in hits} & set(mates)
    query = tracked.model.embed(tracked.features(mates).features).mean(axis=0)
    nearest = min(range(48), key=lambda r: _far(view, r, query, mates))
    assert hits[0].id == str(view.table.ids[nearest])
    [both] = tracked.search_described(
        tracked.features(mates), 100, like=mates, together=True, by_track=True
    )
    assert len(both) == 2 * (7 + 3) - 1


def _far(view: View, row: int, query: np.ndarray, mates: list[str]) -> float:
    distance = float(((view.index.embeddings[row] - query) ** 2).sum())
    return np.inf if str(view.table.ids[row]) in mates else distance


def test_recordings_of_many_people_are_no_tracks(tracked: Gallery, walks: Sightings) -> None:
    """Market-1501 calls a recording a sequence: sightings of two people never share a track."""
    labelled = replace(
        walks,
        persons=np.array([str(path).split("/")[1] for path in walks.paths]),
        sequences=np.full(len(walks), "s1"),
        times=np.arange(float(len(walks))),
    )
    before = len(tracked)
    tracked.add(labelled)
    added = tracked.view.tracks[before:]
    assert len(np.unique(added)) == 16


def test_a_track_is_one_candidate_for_the_probabilities(tracked: Gallery) -> None:
    view = tracked.view
    view.model.calibration = Calibration((0.0, 1.0), (3.0, 0.5, 1.0), 100)
    judged = judge(view, Asked(view.index.embeddings[0]), np.ones(len(view.table), bool))
    for code in np.unique(view.tracks[view.table.sequences != ""]):
        rows = view.tracks == code
        assert len(set(judged.units[rows])) == 1
        assert len(set(judged.probabilities[rows])) == 1
    best = tracked.search_like(str(view.table.ids[0]), 1, by_track=True)[0]
    assert best.probability is not None


def test_re_ranking_is_refused(tracked: Gallery, walks: Sightings) -> None:
    with pytest.raises(InputError, match="not tracks"):
        tracked.search_many(walks.files()[:2], 5, rerank="k-reciprocal", by_track=True)
    with pytest.raises(InputError, match="two or more images"):
        tracked.search_many(walks.files()[:2], 5, Filter(), rerank="cross-view", together=True)
