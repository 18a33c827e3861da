"""Probabilities and presence in a gallery, end to end on synthetic cameras."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resight import KXQDA
from resight.datasets.synthetic import draw_cameras
from resight.evaluation.calibration import Calibration, posterior
from resight.gallery import Gallery
from resight.gallery.confidence import PRESENT, Presence, judge
from resight.gallery.teaching import adopt, refit
from resight.models.calibrating import add_calibration
from resight.models.model import Model


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Forty people to learn from, thirty others in the gallery, ten more who are not."""
    folder = tmp_path_factory.mktemp("confidence")
    sightings = draw_cameras(folder / "cameras", n_people=80, n_cameras=2, seed=6)
    model = Model(("whos-star",), KXQDA())
    features = model.describe(sightings.files())
    learn = sightings.persons <= "0040"
    model.fit(features[learn], sightings.persons[learn], sightings.cameras[learn])
    args = features[learn], sightings.persons[learn], sightings.cameras[learn]
    assert add_calibration(model, *args) is None
    held = ~learn & (sightings.persons <= "0070")
    gallery = Gallery.create(folder / "gallery", model)
    known = replace(sightings, persons=np.where(learn, sightings.persons, ""))
    gallery.add(known.select(np.flatnonzero(held)))
    yield folder, sightings, gallery, known
    gallery.close()


def rows_of(sightings, people, camera="camera-1"):
    wanted = np.isin(sightings.persons, people) & (sightings.cameras == camera)
    return np.flatnonzero(wanted)


def test_probabilities_follow_distance_and_stay_below_one(drawn):
    _, sightings, gallery, _ = drawn
    row = rows_of(sightings, ["0050"])[0]
    hits = gallery.search(sightings.files()[row], 30, cameras=["camera-2"])
    stated = [hit.probability for hit in hits]
    assert stated == sorted(stated, reverse=True)
    assert 0 < sum(stated) < 1
    assert hits.presence == Presence(hits.presence.likely, 0.1, 30)
    assert "false-accept rate of 10%" in hits.presence.words


def test_they_are_those_of_the_calibration(drawn):
    _, sightings, gallery, _ = drawn
    row = rows_of(sightings, ["0055"])[0]
    hits = gallery.search(sightings.files()[row], 60, cameras=["camera-2"])
    D = np.array([hit.distance for hit in hits])
    calibration: Calibration = gallery.model.calibration
    expected = posterior(calibration.log_ratios(D / np.median(D))[None], PRESENT)[0]
    np.testing.assert_allclose([hit.probability for hit in hits], expected, rtol=1e-3)
    assert hits.presence.likely == bool((D / np.median(D)).min() < calibration.threshold(30))


def test_people_who_are_not_there_are_told_apart(drawn):
    _, sightings, gallery, _ = drawn
    there = [f"{i:04d}" for i in range(41, 71)]
    gone = [f"{i:04d}" for i in range(71, 81)]
    likely = []
    for people in (there, gone):
        rows = rows_of(sightings, people)
        found = gallery.search_many([sightings.files()[i] for i in rows], 1)
        likely.append(np.mean([hits.presence.likely for hits in found]))
    assert likely[0] > likely[1]
    assert likely[1] <= 0.4


def test_filters_change_what_is_compared_but_not_the_units(drawn):
    _, sightings, gallery, _ = drawn
    row = rows_of(sightings, ["0060"])[0]
    wide = gallery.search(sightings.files()[row], 60)
    narrow = gallery.search(sightings.files()[row], 60, cameras=["camera-2"])
    assert wide.presence.compared == 60
    assert narrow.presence.compared == 30
    stated = {hit.id: hit.probability for hit in wide}
    for hit in narrow:
        assert hit.probability == pytest.approx(stated[hit.id])


def test_sightings_that_trained_the_model_do_not_make_strangers_look_close(drawn, tmp_path):
    _, sightings, gallery, known = drawn
    both = Gallery.create(tmp_path / "both", gallery.model)
    both.add(known.select(np.flatnonzero(sightings.persons <= "0070")))
    rows = rows_of(sightings, [f"{i:04d}" for i in range(71, 81)])
    files = [sightings.files()[i] for i in rows]
    told = both.search_many(files, 1), gallery.search_many(files, 1)
    likely = [np.mean([hits.presence.likely for hits in one]) for one in told]
    assert likely[0] <= likely[1]  # more sightings ask for closer first matches


def test_small_galleries_and_uncalibrated_models_state_nothing(drawn, tmp_path):
    _, sightings, gallery, _ = drawn
    small = Gallery.create(tmp_path / "small", gallery.model)
    small.add(sightings.select(np.arange(9)))
    hits = small.search(sightings.files()[0], 3)
    assert hits.presence is None
    assert hits[0].probability is None
    view = gallery.view
    calibration, view.model.calibration = view.model.calibration, None
    assert judge(view, view.index.embeddings[0], None) is None
    view.model.calibration = calibration


def test_sightings_of_a_labelled_person_share_their_probability(drawn, tmp_path):
    _, _, gallery, _ = drawn
    model = gallery.model
    twice = draw_cameras(tmp_path / "twice", n_people=12, n_cameras=2, images_per_camera=2, seed=8)
    named = Gallery.create(tmp_path / "named", model)
    named.add(twice)
    hits = named.search(twice.files()[0], 48, cameras=["camera-2"])
    by_person: dict[str, set[float]] = {}
    for hit in hits:
        by_person.setdefault(hit.person, set()).add(hit.probability)
    assert all(len(values) == 1 for values in by_person.values())
    assert sum(values.pop() for values in by_person.values()) < 1


def test_a_refit_is_calibrated_again(drawn, tmp_path):
    _, sightings, gallery, known = drawn
    taught = Gallery.create(tmp_path / "taught", gallery.model)
    taught.add(known.select(np.flatnonzero(sightings.persons <= "0050")))
    view = taught.view
    for person in ("0041", "0042", "0043"):
        pair = sightings.select(np.flatnonzero(sightings.persons == person))
        ids = [hits[0].id for hits in taught.search_many(pair.files(), 1)]
        taught.teach("same", ids[0], ids[1])
    candidate = refit(taught)
    assert candidate.uncalibrated is None
    assert candidate.model.calibration.n_people == 43
    before = view.model.calibration
    adopt(taught, candidate)
    assert taught.model.calibration == candidate.model.calibration != before
    assert taught.search(sightings.files()[0], 1)[0].probability is not None
