"""Cameras: systematic differences by rule, monotone light, no wrapped values."""

from __future__ import annotations

from copy import copy
from itertools import pairwise

import numpy as np

from resight.datasets.synthetic import Camera


def _make(index: int, phase: float = 1.0) -> Camera:
    return Camera(np.random.default_rng(index), index, phase)


def replace(view: Camera, **values: float) -> Camera:
    other = copy(view)
    vars(other).update(values)
    return other


def _still(view: Camera) -> Camera:
    return replace(view, noise=0.0, quality=100)


def _grey(level: float) -> np.ndarray:
    return np.full((64, 32, 3), level, np.float32)


def test_more_light_gives_brighter_pictures() -> None:
    view = _still(_make(0))
    means = [
        view.develop(_grey(level), np.random.default_rng(0)).mean()
        for level in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    ]
    assert np.all(np.diff(means) > 0)


def test_extremes_do_not_wrap_around() -> None:
    view = replace(_make(1), exposure=50.0, noise=30.0)
    assert view.develop(_grey(1.0), np.random.default_rng(0)).min() > 200
    view = replace(_make(1), exposure=1e-6, haze=0.0, noise=30.0)
    assert view.develop(_grey(1.0), np.random.default_rng(0)).max() < 160


def test_neighbouring_cameras_have_different_casts_in_every_town() -> None:
    for phase in np.linspace(0, 6, 7):
        casts = [_make(index, phase).colour.sum(axis=1) for index in range(4)]
        for first, second in pairwise(casts):
            ratio = np.log(first / second)
            assert np.ptp(ratio) > 0.25  # one channel gains a quarter over another


def test_dark_and_bright_cameras_alternate() -> None:
    exposures = [_make(index).exposure for index in range(6)]
    signs = np.sign(np.diff(np.log(exposures)))
    assert np.all(signs[1:] == -signs[:-1])


def test_the_background_has_the_size_asked_for() -> None:
    view = _make(0)
    for shape in ((256, 128), (320, 120), (32, 32)):
        piece = view.background(np.random.default_rng(0), *shape)
        assert piece.shape == (*shape, 3)
        assert piece.dtype == np.float32
