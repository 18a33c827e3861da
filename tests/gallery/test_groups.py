"""Groups of unknown sightings: what is joined, what never is, and what is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import ConflictError, InputError
from resight.evaluation.calibration import Calibration
from resight.gallery import Gallery
from resight.gallery.adding import Described
from resight.gallery.forgetting import forget
from resight.gallery.grouping import Evidence, Units, clusters
from resight.gallery.groups import (
    BY_DISTANCE,
    Groups,
    accept,
    find_groups,
    group,
    not_sure,
    open_groups,
)
from resight.gallery.log import latest

_OTHERS: dict[str, Any] = {"tail": (0.1, 0.5, 2.0, 1.0), "spread": 0.0}  # of no concern here
_REST = {one.name: _OTHERS[one.name] for one in fields(Calibration) if one.name in _OTHERS}
# Evidence for distances far below the median, against those near it.
CALIBRATION = Calibration(pair=(0.0, 1.0), choice=(40.0, 0.0, 12.0), n_people=30, **_REST)


def town(n_people: int, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray, Any]:
    """Embeddings of people before three cameras, two sightings each; who and where."""
    rng = np.random.default_rng(seed)
    centres = 3.0 * rng.normal(size=(n_people, 16))
    people = np.repeat(np.arange(n_people), 6)
    cameras = np.tile([0, 0, 1, 1, 2, 2], n_people)
    drawn = centres[people] + noise * rng.normal(size=(len(people), 16))
    return drawn.astype(np.float32), people, cameras


def silent(share: float) -> None:
    pass


@pytest.mark.parametrize("calibration", [CALIBRATION, None])
def test_clear_people_are_found_exactly(calibration: Calibration | None) -> None:
    embeddings, people, cameras = town(12)
    units = Units.of(embeddings, np.arange(len(people)), cameras)
    found = clusters(Evidence(units, calibration), [], silent)
    assert sorted(sorted(rows.tolist()) for rows, _ in found) == [
        np.flatnonzero(people == person).tolist() for person in range(12)
    ]
    assert all(0.5 < sure <= 1 for _, sure in found)
    assert [sure for _, sure in found] == sorted((sure for _, sure in found), reverse=True)


def test_distances_of_units_are_the_mean_over_their_sightings() -> None:
    embeddings, people, cameras = town(3)
    units = Units.of(embeddings, people, cameras)
    every = ((embeddings[:, None] - embeddings[None]) ** 2).sum(axis=2)
    for a, b in ((0, 1), (2, 0)):
        mean = every[np.ix_(people == a, people == b)].mean()
        assert units.distances([a], [b])[0, 0] == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize("calibration", [CALIBRATION, None])
def test_what_was_said_to_be_different_is_never_joined(calibration: Calibration | None) -> None:
    embeddings, people, cameras = town(8)
    units = Units.of(embeddings, np.arange(len(people)), cameras)
    apart = [(0, 2), (1, 5), (6, 7), (13, 17)]
    found = clusters(Evidence(units, calibration), apart, silent)
    for rows, _ in found:
        for a, b in apart:
            assert not {a, b} <= {*rows.tolist()}
    assert sum(len(rows) for rows, _ in found) >= 40


def test_blocks_do_not_change_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, people, cameras = town(15, seed=3, noise=1.0)
    units = Units.of(embeddings, np.arange(len(people)), cameras)
    whole = clusters(Evidence(units, CALIBRATION), [], silent)
    monkeypatch.setattr("resight.gallery.grouping._CELLS", 200)
    parts = clusters(Evidence(units, CALIBRATION), [], silent)
    assert [rows.tolist() for rows, _ in parts] == [rows.tolist() for rows, _ in whole]


def test_parts_that_are_too_large_need_more_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, people, cameras = town(15, seed=4, noise=1.2)
    units = Units.of(embeddings, np.arange(len(people)), cameras)
    monkeypatch.setattr("resight.gallery.grouping._LARGE", 8)
    for rows, _ in clusters(Evidence(units, CALIBRATION), [], silent):
        assert len(rows) <= 8


@pytest.fixture
def unknown(uri: str, people: Sightings, model: Callable[..., Any]) -> Gallery:
    """A gallery in which nobody is known."""
    made = Gallery.create(uri, model())
    made.add(replace(people, persons=np.full(len(people), "")))
    return made


def test_groups_are_kept_with_what_they_come_from(unknown: Gallery) -> None:
    assert Groups.read(unknown.engine) is None
    assert list(open_groups(unknown)) == []
    made = group(unknown)
    assert Groups.read(unknown.engine) == made
    assert (made.total, made.model, made.last) == (36, unknown.model.fingerprint, "")
    assert made.rule == BY_DISTANCE  # the toy model has no calibration
    assert made.groups
    assert made.groups == sorted(made.groups, key=lambda one: -one.sure)
    assert not made.stale(unknown.view)
    a, b = made.groups[0].sightings[:2]
    unknown.teach("different", a, b)
    assert replace(made, when=0.0).stale(unknown.view)
    assert not replace(made, seconds=1e6).stale(unknown.view)  # not again and again
    again = group(unknown)
    assert not any({a, b} <= {*one.sightings} for one in again.groups)


def test_accepting_dropping_naming_and_undoing(unknown: Gallery) -> None:
    group(unknown)
    first, second = islice(open_groups(unknown), 2)
    assert second.key != first.key
    entries = accept(unknown, first.sightings[1:], dropped=first.sightings[:1], name="Zoë")
    labels = unknown.view.labels
    assert {labels.person(one) for one in first.sightings[1:]} == {"Zoë"}
    assert labels.person(first.sightings[0]) == ""
    assert labels.verdict(*first.sightings[:2]) == "different"
    assert next(open_groups(unknown)) == second  # at once, without computing
    unknown.teach("undo", entries[0].key)
    assert "Zoë" not in unknown.view.named
    assert unknown.view.labels.verdict(*first.sightings[:2]) is None
    accept(unknown, first.sightings, name="Zoë")
    accept(unknown, second.sightings, name="Zoë")  # a name that is there joins
    assert int((unknown.view.persons == "Zoë").sum()) == len(first.sightings + second.sightings)
    what = [one["what"] for one in latest(unknown.engine, 20)]
    assert what.count("same") == 2 + (len(first.sightings) > 2)  # a single one is but named
    with pytest.raises(ConflictError, match=r"somebody said meanwhile .* 'Zoë'"):
        accept(unknown, second.sightings, name="Kim")
    with pytest.raises(InputError, match="keep at least one"):
        accept(unknown, [])


def test_not_sure_comes_last_and_can_be_undone(unknown: Gallery) -> None:
    group(unknown)
    before = [one.key for one in open_groups(unknown)]
    assert len(before) > 1
    first = next(open_groups(unknown))
    said = not_sure(unknown, first.sightings)
    assert [one.key for one in open_groups(unknown)] == [*before[1:], before[0]]
    unknown.teach("undo", said.key)
    assert [one.key for one in open_groups(unknown)] == before


def test_removed_sightings_leave_the_groups(unknown: Gallery) -> None:
    group(unknown)
    first = next(open_groups(unknown))
    unknown.remove(first.sightings[:1])
    for one in open_groups(unknown):
        assert first.sightings[0] not in one.sightings
    accept(unknown, first.sightings[1:], name="Zoe Unique")
    forget(unknown, "Zoe Unique")
    assert Groups.read(unknown.engine) is None


def test_proposals_are_read_never_computed(
    unknown: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = group(unknown)

    def refuse(*args: Any) -> None:
        raise AssertionError("computed on a request")

    monkeypatch.setattr("resight.gallery.groups.propose", refuse)
    monkeypatch.setattr("resight.gallery.groups.find_groups", refuse)
    kept = Groups.read(unknown.engine)
    assert kept is not None
    assert kept.farthest == made.farthest
    assert len(kept.farthest) > 5
    assert next(open_groups(unknown)) == made.groups[0]


def test_tracks_stay_together_unless_somebody_saw_two_people(
    tmp_path: Path, model: Callable[..., Any]
) -> None:
    vectors, people, cameras = town(6)
    n = len(people)
    given = Sightings(
        np.array([f"{i}.png" for i in range(n)]),
        np.full(n, ""),
        np.array([f"c{camera}" for camera in cameras]),
        sequences=np.array([f"{p}" for p in people]),
    )
    gallery = Gallery.create(tmp_path / "tracks", model())
    wide = np.zeros((n, 48), np.float32)
    wide[:, :16] = vectors
    gallery.add(given, described=Described(wide, "stripes-1"), imageless=True)
    truth = {key: people[int(source[:-4])] for key, source in _sources(gallery).items()}
    found = find_groups(gallery.view)
    for one in found:
        tracks = Counter((truth[key], _camera(gallery, key)) for key in one.sightings)
        assert set(tracks.values()) == {2}  # both sightings of each track
    a, b = [key for key, person in truth.items() if person == 0][:2]
    gallery.teach("different", a, b)
    for one in find_groups(gallery.view):
        assert not {a, b} <= {*one.sightings}


def _sources(gallery: Gallery) -> dict[str, str]:
    table = gallery.view.table
    return dict(zip(table.ids.tolist(), table.sources.tolist(), strict=True))


def _camera(gallery: Gallery, key: str) -> str:
    return str(gallery.view.table.cameras[gallery.view.rows[key]])


def test_nothing_to_group(uri: str, model: Callable[..., Any]) -> None:
    gallery = Gallery.create(uri, model())
    assert group(gallery).groups == []
    small = Gallery.open(uri, memory_limit=1)
    assert find_groups(small.view) == []


def test_embeddings_that_do_not_fit_into_memory_are_said(unknown: Gallery) -> None:
    with pytest.raises(InputError, match="larger than the memory"):
        find_groups(Gallery.open(unknown.uri, memory_limit=1).view)
