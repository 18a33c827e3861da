"""Probabilities and answers in a gallery, end to end on synthetic cameras."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from resight import KXQDA
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError
from resight.gallery import Described, Gallery
from resight.gallery.confidence import Asked, judge
from resight.gallery.index import ExactIndex
from resight.gallery.teaching import adopt, refit
from resight.images import read
from resight.models.calibrating import add_calibration
from resight.models.model import Model


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Sixty people to learn from, thirty others in the gallery, fifty more who are not."""
    folder = tmp_path_factory.mktemp("confidence")
    sightings = draw_cameras(folder / "cameras", n_people=140, n_cameras=2, seed=6)
    model = Model(("whos-star",), KXQDA())
    features = model.describe(sightings.files())
    learn = sightings.persons <= "0060"
    model.fit(features[learn], sightings.persons[learn], sightings.cameras[learn])
    args = features[learn], sightings.persons[learn], sightings.cameras[learn]
    assert add_calibration(model, *args) is None
    held = ~learn & (sightings.persons <= "0090")
    gallery = Gallery.create(folder / "gallery", model)
    known = replace(sightings, persons=np.where(learn, sightings.persons, ""))
    gallery.add(known.select(np.flatnonzero(held)))
    yield folder, sightings, gallery, known
    gallery.close()


def rows_of(sightings, people, camera="camera-1"):
    wanted = np.isin(sightings.persons, people) & (sightings.cameras == camera)
    return np.flatnonzero(wanted)


def named(first, last):
    return [f"{i:04d}" for i in range(first, last + 1)]


def answers(gallery, sightings, rows, **ways):
    other = {"camera-1": "camera-2", "camera-2": "camera-1"}
    found = [
        gallery.search(
            sightings.files()[i], 1, cameras=[other[sightings.cameras[i]]], **ways
        ).presence.answer
        for i in rows
    ]
    return {answer: found.count(answer) / len(found) for answer in ("found", "unsure", "absent")}


def test_probabilities_follow_distance_and_stay_below_one(drawn):
    _, sightings, gallery, _ = drawn
    row = rows_of(sightings, ["0070"])[0]
    hits = gallery.search(sightings.files()[row], 30, cameras=["camera-2"])
    stated = [hit.probability for hit in hits]
    assert np.mean(stated[:5]) > np.mean(stated[5:])
    assert 0 < sum({hit.unit: hit.probability for hit in hits}.values()) < 1
    assert hits.presence.compared == 30
    assert hits.presence.false_accepts == hits.presence.false_rejects == 0.1


def test_distances_have_one_scale_and_keep_the_raw_value(drawn):
    _, sightings, gallery, _ = drawn
    row = rows_of(sightings, ["0071"])[0]
    hits = gallery.search(sightings.files()[row], 60)
    ratios = [hit.raw_distance / hit.distance for hit in hits]
    np.testing.assert_allclose(ratios, ratios[0])
    z = np.array([hit.raw_distance for hit in hits])
    even = gallery.model.calibration.relative_at(0.0)
    assert gallery.model.calibration.log_ratios(even) == pytest.approx(0.0, abs=0.1)
    assert ratios[0] == pytest.approx(even * np.median(z), rel=1e-3)


def test_cameras_of_any_size_are_judged_alike(drawn, monkeypatch):
    _, sightings, gallery, _ = drawn
    query = gallery.view.index.embeddings[0] + np.float32(1e-3)
    found = []
    for most in (0, len(sightings)):  # distances of a camera in small products, and all at once
        monkeypatch.setattr("resight.gallery.confidence._TOGETHER", most)
        view = replace(gallery.view, index=ExactIndex(gallery.view.index.embeddings))
        found.append(judge(view, Asked(query), np.ones(len(view.table), bool)))
    one, other = found
    np.testing.assert_array_equal(one.units, other.units)
    np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=1e-12)
    assert one.presence == other.presence


def test_answers_are_mostly_right_and_never_claim_absence_when_unsure(drawn):
    _, sightings, gallery, _ = drawn
    there, gone = (
        answers(gallery, sightings, np.flatnonzero(np.isin(sightings.persons, people)))
        for people in (named(61, 90), named(91, 140))
    )
    assert there["absent"] <= 0.25
    assert there["absent"] < gone["absent"]
    assert there["found"] == gone["found"] == 0  # sixty people do not show when that is right
    asked = [sightings.files()[row] for row in rows_of(sightings, named(61, 90))]
    unsure = [hits.presence for hits in gallery.search_many(asked, 1)]
    told = next(one for one in unsure if "label more" in one.why)
    assert "found" not in told.measured
    for answer in ("found", "unsure", "absent"):
        assert ("Not found" in replace(told, answer=answer).words) == (answer == "absent")


def points(n, seed):
    """Draw people as points before two cameras, of which one turns them."""
    rng, world = np.random.default_rng(seed), np.random.default_rng(100)
    turned = np.stack([np.eye(40), np.linalg.qr(world.normal(size=(40, 40)))[0]])
    persons, cameras = np.tile(np.arange(n), 2), np.repeat([0, 1], n)
    X = np.einsum(
        "ij,ijk->ik", (rng.normal(size=(n, 40)) * np.linspace(2, 0.2, 40))[persons], turned[cameras]
    )
    return X + 0.3 * rng.normal(size=X.shape), persons.astype(str), cameras.astype(str)


def test_enough_people_tell_when_somebody_is_found(tmp_path):
    X, persons, cameras = points(200, seed=0)
    model = Model((), KXQDA()).fit(X, persons, cameras)
    assert add_calibration(model, X, persons, cameras) is None
    new, who, where = points(120, seed=1)
    gallery = Gallery.create(tmp_path / "points", model)
    held = (where == "1") & (np.char.str_len(who) < 3)  # a hundred of them, twenty are not there
    paths = np.array([f"{c}-{p}" for p, c in zip(who, where, strict=True)])
    given = Sightings(paths[held], np.full(held.sum(), ""), where[held], name="points")
    described = Described(new[held].astype(np.float32), model.descriptor_fingerprint)
    gallery.add(given, described=described, imageless=True)
    asked = [
        gallery.search(Described(row[None].astype(np.float32), model.descriptor_fingerprint), 1)
        for row in new[where == "0"]
    ]
    found, absent = (
        np.array([hits.presence.answer == answer for hits in asked])
        for answer in ("found", "absent")
    )
    right = np.array([hits[0].source == f"1-{i}" for i, hits in enumerate(asked)])
    assert found[:100].mean() > 0.4
    assert found[100:].mean() <= 0.15
    assert right[found].mean() >= 0.8
    assert absent[:100].mean() <= 0.15
    assert absent[100:].mean() > 3 * absent[:100].mean()
    gallery.close()


def test_several_pictures_pool_their_evidence(drawn):
    _, sightings, gallery, _ = drawn
    file, other = (sightings.files()[i] for i in rows_of(sightings, named(70, 71)))
    once, twice, both, turned = (
        gallery.search(asked, 30, cameras=["camera-2"])
        for asked in (file, [file, file], [file, other], [other, file])
    )
    stated = {hit.id: hit.probability for hit in once}
    # What is said twice is no more likely, and the order does not matter.
    assert {hit.id: hit.probability for hit in twice} == pytest.approx(stated, rel=1e-4)
    assert [hit.probability for hit in both] == [hit.probability for hit in turned]


def test_nobody_stands_out_because_several_pictures_differ(drawn):
    _, sightings, gallery, _ = drawn
    view, searched = gallery.view, gallery.view.table.cameras == "camera-2"
    files = [sightings.files()[i] for i in rows_of(sightings, named(91, 100))]
    E = np.asarray(gallery.model.embed(gallery.model.describe(files)), np.float32)
    pooled, averaged = [], []
    for pair in pairwise(E):
        several = np.array(pair)
        mean = several.mean(axis=0)
        pooled.append(np.nanmax(judge(view, Asked(mean, several=several), searched).probabilities))
        averaged.append(np.nanmax(judge(view, Asked(mean), searched).probabilities))
    assert np.mean(pooled) < np.mean(averaged)


def test_prior_and_rates_are_settings_of_the_gallery(drawn, tmp_path):
    _, sightings, gallery, known = drawn
    own = Gallery.create(tmp_path / "own", gallery.model)
    own.add(known.select(np.flatnonzero(np.isin(sightings.persons, named(61, 90)))))
    file = sightings.files()[rows_of(sightings, ["0072"])[0]]
    usual = own.search(file, 1, cameras=["camera-2"])
    own.require(prior=0.9, false_accepts=0.05)
    sure = own.search(file, 1, cameras=["camera-2"])
    assert sure[0].probability > usual[0].probability
    assert sure.presence.false_accepts == 0.05
    with pytest.raises(InputError, match="between 0 and 1"):
        own.require(prior=1.5)
    own.close()


def test_small_galleries_are_unsure_and_uncalibrated_models_say_why(drawn, tmp_path):
    _, sightings, gallery, _ = drawn
    for n in (1, 2, 10):
        small = Gallery.create(tmp_path / f"small{n}", gallery.model)
        rows = rows_of(sightings, named(91, 100))[:n]
        small.add(sightings.select(rows))
        other = rows_of(sightings, ["0070"])[0]
        hits = small.search(sightings.files()[other], 3)
        if n < 8:
            assert hits.presence.answer == "unsure"
            assert "too few people" in hits.presence.why
            assert hits[0].probability is None
        small.close()
    bare = Gallery.create(
        tmp_path / "bare",
        Model(("whos-star",), gallery.model.learner, normalize=gallery.model.normalizer),
    )
    bare.add(sightings.select(rows_of(sightings, named(61, 90))))
    hits = bare.search(sightings.files()[0], 3)
    assert hits.presence is None
    assert hits.note == "not calibrated yet: label 20 more people in two cameras"
    assert hits[0].probability is None
    assert hits[0].distance == hits[0].raw_distance
    bare.close()


def test_sightings_of_a_labelled_person_share_their_probability(drawn, tmp_path):
    _, _, gallery, _ = drawn
    twice = draw_cameras(tmp_path / "twice", n_people=12, n_cameras=2, images_per_camera=2, seed=8)
    named_ = Gallery.create(tmp_path / "named", gallery.model)
    named_.add(twice)
    hits = named_.search(twice.files()[0], 48, cameras=["camera-2"])
    by_person: dict[str, set[float]] = {}
    for hit in hits:
        by_person.setdefault(hit.person, set()).add(hit.probability)
    assert all(len(values) == 1 for values in by_person.values())
    assert sum(values.pop() for values in by_person.values()) < 1
    named_.close()


def encoded(content, scale=1.0, quality=80):
    picture = Image.fromarray(read(content))
    size = round(picture.width * scale), round(picture.height * scale)
    buffer = io.BytesIO()
    picture.resize(size, Image.Resampling.LANCZOS).save(buffer, "JPEG", quality=quality)
    return read(buffer.getvalue())


@pytest.mark.parametrize("scale", [None, 1.0, 2.0])
def test_the_picture_itself_is_marked_and_left_out(drawn, tmp_path, scale):
    _, sightings, gallery, known = drawn
    row = rows_of(sightings, ["0075"], "camera-2")[0]
    file = sightings.files()[row]
    query = file if scale is None else encoded(file.read_bytes(), scale)
    hits = gallery.search(query, 5, cameras=["camera-2"])
    assert [hit.source for hit in hits.same_pictures] == [file.name] or len(hits.same_pictures) == 1
    own = hits.same_pictures[0]
    assert own.same_picture
    assert own.probability is None
    assert own.id not in {hit.id for hit in hits}
    gone = Gallery.create(tmp_path / "gone", gallery.model)
    rest = np.flatnonzero(np.isin(sightings.persons, named(61, 90)))
    gone.add(known.select(rest[rest != row]))
    same = gone.search(query, 5, cameras=["camera-2"])
    assert [hit.id for hit in same] == [hit.id for hit in hits]
    np.testing.assert_allclose(
        [hit.probability for hit in same], [hit.probability for hit in hits], atol=0.05
    )
    ranked = gallery.search(query, 5, cameras=["camera-2"], same_pictures=True)
    assert ranked[0].id == own.id
    gone.close()


def test_what_trained_the_model_is_marked_and_has_no_probability(drawn, tmp_path):
    _, sightings, gallery, known = drawn
    both = Gallery.create(tmp_path / "both", gallery.model)
    both.add(known.select(np.flatnonzero(sightings.persons <= "0090")))
    row = rows_of(sightings, ["0010"])[0]
    hits = both.search(sightings.files()[row], 180, cameras=["camera-2"])
    trained = {hit.person: hit.trained for hit in hits}
    assert all(told == (person != "") for person, told in trained.items())
    assert all((hit.probability is None) == hit.trained for hit in hits)
    assert hits[0].person == "0010"
    assert hits.presence.answer == "unsure"
    assert "trained the model" in hits.presence.why
    both.close()


def test_strange_pictures_are_unsure(drawn):
    _, _, gallery, _ = drawn
    rng = np.random.default_rng(0)
    told = []
    for i in range(10):
        grid = rng.integers(0, 255, size=(4 + i, 3, 3), dtype=np.uint8)
        picture = np.asarray(Image.fromarray(grid).resize((64, 128), Image.Resampling.NEAREST))
        told.append(gallery.search(picture, 1).presence)
    assert np.mean([one.answer == "unsure" for one in told]) >= 0.8
    assert any("nothing that the model learned from" in one.why for one in told)


def test_a_colour_cast_that_training_never_saw_is_unsure(drawn):
    _, sightings, gallery, _ = drawn
    cast = np.array([1.35, 1.0, 0.6])  # of the measured page
    pictures = [
        np.clip(read(sightings.files()[i]) * cast, 0, 255).astype(np.uint8)
        for i in rows_of(sightings, named(61, 90))
    ]
    told = [hits.presence for hits in gallery.search_many(pictures, 1)]
    assert np.mean([one.answer == "unsure" for one in told]) >= 0.8
    assert all(one.why for one in told if one.answer == "unsure")
    assert any("nothing that the model learned from" in one.why for one in told)


def test_a_refit_is_calibrated_again(drawn, tmp_path):
    _, sightings, gallery, known = drawn
    taught = Gallery.create(tmp_path / "taught", gallery.model)
    taught.add(known.select(np.flatnonzero(sightings.persons <= "0070")))
    view = taught.view
    for person in ("0061", "0062", "0063"):
        pair = sightings.select(np.flatnonzero(sightings.persons == person))
        found = taught.search_many(pair.files(), 1, same_pictures=True)
        ids = [hits[0].id for hits in found]
        taught.teach("same", ids[0], ids[1])
    candidate = refit(taught)
    assert candidate.uncalibrated is None
    assert candidate.model.calibration.n_people == 63
    before = view.model.calibration
    adopt(taught, candidate)
    assert taught.model.calibration.choice == candidate.model.calibration.choice != before.choice
    taught.close()


def test_a_track_of_a_hundred_frames_shares_a_high_probability(drawn, tmp_path):
    _, _, gallery, _ = drawn
    walk = draw_cameras(tmp_path / "walk", n_people=1, n_cameras=1, images_per_camera=100, seed=31)
    people = draw_cameras(tmp_path / "others", n_people=30, n_cameras=1, seed=32)
    flooded = Gallery.create(tmp_path / "flooded", gallery.model)
    nobody = np.full(len(people), "")
    flooded.add(replace(people, persons=nobody))
    track = replace(walk, persons=np.full(100, ""), sequences=np.full(100, "walk"))
    flooded.add(track)
    hits = flooded.search(walk.files()[50], 130)
    assert len(hits.same_pictures) == 1
    frames = [hit for hit in hits if hit.track == "walk"]
    assert len(frames) == 99
    assert len({(hit.unit, hit.probability) for hit in frames}) == 1
    assert frames[0].probability > 0.5
    others = [hit.probability for hit in hits if hit.track == ""]
    assert max(others) < 0.2
    flooded.close()


def test_frames_without_a_track_are_grouped_and_one_person_under_two_names_is_served(
    drawn, tmp_path
):
    _, _, gallery, _ = drawn
    few = draw_cameras(tmp_path / "few", n_people=12, n_cameras=1, images_per_camera=4, seed=33)
    loose = Gallery.create(tmp_path / "loose", gallery.model)
    loose.add(replace(few, persons=np.full(len(few), "")))
    hits = loose.search(few.files()[0], 47)
    by_unit: dict[str, set[float]] = {}
    for hit in hits:
        by_unit.setdefault(hit.unit, set()).add(hit.probability)
    assert all(len(values) == 1 for values in by_unit.values())
    loose.close()
    named_twice = Gallery.create(tmp_path / "twice", gallery.model)
    names = np.array([f"{p}{i % 2}" for i, p in enumerate(few.persons)])
    named_twice.add(replace(few, persons=names))
    told = named_twice.search(few.files()[0], 47)
    assert told.presence.answer in ("found", "unsure")
    named_twice.close()


def test_one_camera_and_one_person_are_answered_without_certainty(drawn, tmp_path):
    _, _, gallery, _ = drawn
    one = draw_cameras(tmp_path / "one", n_people=1, n_cameras=1, images_per_camera=12, seed=34)
    alone = Gallery.create(tmp_path / "alone", gallery.model)
    alone.add(one)
    hits = alone.search(one.files()[0], 12)
    assert hits.presence.answer == "unsure"
    assert hits.presence.why
    assert hits[0].probability is None
    alone.close()
