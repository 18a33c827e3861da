"""Training rows: what is equal and should not be is refused, or named."""

from __future__ import annotations

import numpy as np
import pytest

import resight
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError

CODES = np.tile(np.arange(12), 2)


def saved(folder, vectors, cameras=None):
    cameras = np.repeat(["A", "B"], 12) if cameras is None else cameras
    np.savez(folder / "own.npz", features=vectors, persons=CODES, cameras=cameras)
    return folder / "own.npz"


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 9))[CODES] + 0.3 * rng.normal(size=(24, 9))


def test_equal_vectors_are_refused(tmp_path):
    file = saved(tmp_path, np.ones((24, 5)))
    for function in (resight.fit, resight.evaluate):
        with pytest.raises(InputError, match=r"all 24 vectors of own\.npz are equal"):
            function(features=file, store=tmp_path / "store", jobs=1)


def test_the_same_picture_under_two_people_is_named(tmp_path, vectors):
    vectors[20] = vectors[3]
    file = saved(tmp_path, vectors)
    named = r"labelled as two people: own\.npz#3 \(3\) and own\.npz#20 \(8\)"
    with pytest.warns(UserWarning, match=named):
        resight.fit(features=file, learner="xqda", calibrate=False)
    with pytest.warns(UserWarning, match=named):
        resight.evaluate(features=file, learner="xqda", store=tmp_path / "store", jobs=1)


@pytest.mark.filterwarnings("default")
def test_the_command_line_says_it_in_one_line(tmp_path, vectors, capsys):
    vectors[20] = vectors[3]
    words = ["fit", "--features", str(saved(tmp_path, vectors)), "--learner", "xqda"]
    assert main([*words, "--out", str(tmp_path / "model")]) == 0
    assert "warning: the same picture is labelled as two people" in capsys.readouterr().err


def test_a_descriptor_that_says_nothing_is_named(tmp_path, vectors):
    from dataclasses import replace

    from resight.features.vectors import load_vectors

    features, sightings = load_vectors(saved(tmp_path, vectors))
    parts = (*features.parts, np.zeros((24, 4)))
    both = replace(features, parts=parts, descriptors=("good", "flat"), blocks=(9, 4))
    with pytest.warns(UserWarning, match="flat has equal vectors"):
        model = resight.fit(sightings, features=both, calibrate=False, store=tmp_path / "store")
    assert np.isfinite(model.distances(both.features, both.features)).all()


def test_people_of_one_camera_only_teach_nothing(tmp_path, vectors):
    file = saved(tmp_path, vectors, cameras=np.where(CODES < 6, "A", "B"))
    with pytest.raises(InputError, match="none of the 12 people is seen by two cameras"):
        resight.fit(features=file)


def test_a_camera_that_shares_nobody_does_not_stop_the_others(tmp_path, vectors):
    cameras = np.array([*np.repeat(["A", "B"], 12), "C", "C"])
    more = np.concatenate([vectors, -vectors[:2]])
    persons = np.concatenate([CODES, [50, 51]])
    np.savez(tmp_path / "own.npz", features=more, persons=persons, cameras=cameras)
    assert resight.fit(features=tmp_path / "own.npz", calibrate=False).learner.n_components_


def test_a_folder_without_a_readable_picture(tmp_path):
    sightings = draw_cameras(tmp_path / "cameras", 2, size=(64, 32))
    for path in sightings.files():
        path.write_bytes(b"not an image")
    with pytest.raises(InputError, match="no image could be described"):
        resight.fit(sightings, descriptor="whos-star", store=tmp_path / "features", jobs=1)
