"""The drawn town: seeded, the same person everywhere, cameras that differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from resight.datasets import load
from resight.datasets.synthetic import draw_cameras, draw_person
from resight.errors import InputError


def test_a_picture_depends_on_its_own_numbers_only() -> None:
    alone = draw_person(5, 1, shot=2, seed=3)
    for person in range(4):
        draw_person(person, 0, seed=3)
    assert alone.dtype == np.uint8
    assert alone.shape == (128, 64, 3)
    np.testing.assert_array_equal(alone, draw_person(5, 1, shot=2, seed=3))
    others = [(6, 1, 2, 3), (5, 0, 2, 3), (5, 1, 1, 3), (5, 1, 2, 4)]
    for person, camera, shot, seed in others:
        assert not np.array_equal(alone, draw_person(person, camera, shot=shot, seed=seed))


@pytest.mark.parametrize("size", [(128, 48), (160, 60), (256, 128), (16, 16)])
def test_any_size_can_be_drawn(size: tuple[int, int]) -> None:
    assert draw_person(1, size=size).shape == (*size, 3)


def test_written_files_are_the_drawn_pictures(tmp_path: Path) -> None:
    import cv2

    sightings = draw_cameras(tmp_path, 3, 2, images_per_camera=2, seed=1, distractors=2)
    assert len(sightings) == 3 * 2 * 2 + 2 * 2
    assert sightings.roles.tolist().count("distractor") == 4
    for file, person, camera in zip(
        sightings.files(), sightings.persons.tolist(), sightings.cameras.tolist(), strict=True
    ):
        numbers = int(person) - 1, int(camera.removeprefix("camera-")) - 1
        drawn = draw_person(*numbers, shot=int(file.stem) - 1, seed=1)
        np.testing.assert_array_equal(cv2.imread(str(file))[..., ::-1], drawn)
        assert file.parts[-3:-1] == (camera, person)


def test_loading_the_folder_gives_the_same_sightings(tmp_path: Path) -> None:
    drawn = draw_cameras(tmp_path, 2, 2, images_per_camera=2, distractors=1, size=(32, 16))
    loaded = load(tmp_path)
    assert loaded.name == drawn.name
    for column in ("paths", "persons", "cameras", "times", "roles"):
        np.testing.assert_array_equal(getattr(loaded, column), getattr(drawn, column))


def test_everybody_walks_from_camera_to_camera(tmp_path: Path) -> None:
    drawn = draw_cameras(tmp_path, 3, 3, 2, size=(16, 16))
    for person in set(drawn.persons.tolist()):
        times = drawn.times[drawn.persons == person].tolist()
        assert times == sorted(times)


def test_distractors_are_seen_by_the_last_camera_only(tmp_path: Path) -> None:
    drawn = draw_cameras(tmp_path, 2, 3, distractors=2, size=(16, 16))
    assert set(drawn.cameras[drawn.roles == "distractor"].tolist()) == {"camera-3"}
    assert set(drawn.persons[drawn.roles == "distractor"].tolist()) == {"0003", "0004"}


@pytest.mark.parametrize(
    "wrong", [{"n_people": 0}, {"n_cameras": 0}, {"images_per_camera": 0}, {"seed": -1}]
)
def test_impossible_numbers_are_refused(wrong: dict[str, int], tmp_path: Path) -> None:
    numbers = {"n_people": 2, "n_cameras": 2, "images_per_camera": 1} | wrong
    with pytest.raises(InputError, match=next(iter(wrong))):
        draw_cameras(tmp_path, **numbers)


def test_a_tiny_picture_is_refused() -> None:
    with pytest.raises(InputError, match="at least 16"):
        draw_person(0, size=(8, 8))


def test_learning_clearly_helps_and_plain_distances_are_far_from_perfect() -> None:
    from resight import KXQDA
    from resight.descriptors import lomo

    drawn = [draw_person(person, view, seed=1) for view in range(2) for person in range(80)]
    X = np.stack([lomo(image, retinex=False) for image in drawn])  # (160, d)
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    persons, cameras = np.tile(np.arange(80), 2), np.repeat([0, 1], 80)
    train = np.arange(160) % 80 < 40
    queries, gallery = (~train & (cameras == name) for name in (0, 1))
    assert persons[queries].tolist() == persons[gallery].tolist()

    plain = 2 - 2 * X[queries] @ X[gallery].T  # (40, 40), rows have length 1
    learner = KXQDA().fit(X[train], persons[train], cameras=cameras[train])
    learned = learner.distances(X[queries], X[gallery])
    plain_rank1, learned_rank1 = ((D.argmin(axis=1) == range(40)).mean() for D in (plain, learned))
    assert plain_rank1 < 0.6
    assert learned_rank1 > plain_rank1 + 0.1
