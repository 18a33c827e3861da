"""The figure: what is in front hides what is behind, and the body stays where it is put."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from resight.datasets._clothing import Appearance, Cloth
from resight.datasets._drawing import Figure, Pose

GREEN = (0.0, 1.0, 0.0)
GREY = (0.5, 0.5, 0.5)


def _plain_person(**differences: Any) -> Appearance:
    cloth, looks = Cloth(GREY), Appearance(np.random.default_rng(0))
    vars(looks).update(
        girth=1.0, skin=GREY, hair=GREY, hat=None, upper=cloth, lower=cloth, open_front=None,
        shoes=GREY, bag="none", bag_cloth=cloth, lower_kind="trousers",
    )  # fmt: skip
    vars(looks).update(differences)
    return looks


def _draw(looks: Appearance, yaw: float) -> np.ndarray:
    canvas = np.zeros((256, 128, 3), np.float32)
    pose = Pose(yaw, phase=1.0, stride=0.2, elevation=0.0, centre=64, feet=250, scale=230, lean=0.0)
    Figure(canvas, looks, pose).paint()
    return canvas


def _green(canvas: np.ndarray) -> int:
    return int(((canvas[..., 1] > 0.5) & (canvas[..., 0] < 0.1)).sum())


def test_a_print_on_the_chest_is_seen_from_the_front_only() -> None:
    looks = _plain_person(upper=Cloth(GREY, GREEN, "logo", 0.05, 0.0))
    assert _green(_draw(looks, 0.0)) > 100
    assert _green(_draw(looks, np.pi)) == 0


def test_an_open_jacket_shows_the_shirt_from_the_front_only() -> None:
    looks = _plain_person(open_front=GREEN)
    assert _green(_draw(looks, 0.0)) > 300
    assert _green(_draw(looks, np.pi)) == 0


def test_a_backpack_is_seen_from_behind_and_from_the_side() -> None:
    looks = _plain_person(bag="backpack", bag_cloth=Cloth(GREEN, GREEN, "plain", 1, 0))
    front, side, back = (_green(_draw(looks, yaw)) for yaw in (0.0, np.pi / 2, np.pi))
    assert back > side > 100
    assert back > 3 * front > 0  # straps


@pytest.mark.parametrize("yaw", np.linspace(0, 2 * np.pi, 9))
def test_the_body_stands_where_it_is_put(yaw: float) -> None:
    body = _draw(_plain_person(), yaw).any(axis=2)
    rows, columns = np.nonzero(body)
    assert abs(rows.min() - (250 - 230)) < 12  # top of the head
    assert abs(rows.max() - 250) < 12  # feet
    assert abs(columns.mean() - 64) < 8


def test_a_side_view_is_narrower_than_a_front_view() -> None:
    chest = slice(90, 110)
    widths = [_draw(_plain_person(), yaw)[chest].any(axis=2).sum() for yaw in (0.0, np.pi / 2)]
    assert widths[0] > 1.2 * widths[1]


def test_a_figure_may_leave_the_picture() -> None:
    canvas = np.zeros((64, 32, 3), np.float32)
    pose = Pose(0.3, 0.0, 0.4, 0.3, centre=-200.0, feet=400.0, scale=60.0, lean=0.0)
    Figure(canvas, _plain_person(), pose).paint()
    assert not canvas.any()
