"""Drawn cameras: the place a camera looks at, how people pass it, and how it renders colours."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))  # multiples of it never come close to each other
_CAST = 0.2  # logarithm of the gain of the strongest channel


class Camera:
    """Camera number `index` of a town: everything that is the same in all its pictures.

    Neighbours in number are told apart by rule, not by luck, so that every seed is about equally
    hard: their colour casts and the directions in which people walk are golden angles apart,
    starting from the town's `phase`, and dark cameras alternate with bright ones.
    """

    def __init__(self, rng: np.random.Generator, index: int, phase: float) -> None:
        angle = phase + index * _GOLDEN_ANGLE
        contrast = 1.0 if (index + int(phase * 10)) % 2 else -1.0
        # (3, 3), linear response: white balance times the mixing of the channels
        self.colour = _response(rng, angle + rng.normal(0, 0.2))
        self.exposure = float(np.exp(0.05 + 0.22 * contrast + rng.normal(0, 0.05)))
        self.gamma = float(1.0 + 0.18 * contrast + rng.normal(0, 0.03))  # of the tone curve
        self.haze = float(rng.uniform(0.02, 0.10))  # the veil that lifts the blacks
        self.blur = float(rng.uniform(0.3, 0.8))  # in pixels
        self.noise = float(rng.uniform(2, 7))  # in grey levels of 255
        self.quality = int(rng.integers(60, 95))  # of JPEG
        self.detail = float(rng.uniform(0.6, 1.0))  # share of the resolution that is delivered
        self.yaw = float(angle + rng.normal(0, 0.2))  # where most people walk, radians
        self.elevation = float(rng.uniform(0.02, 0.4))  # how far it looks down, radians
        self.occlusion = float(rng.uniform(0.05, 0.15))  # how often something is in front
        self.backdrop = _scene(rng)  # (h, w, 3), without people, larger than a crop

    def background(self, rng: np.random.Generator, height: int, width: int) -> Floats:
        """Cut a random piece of the scene; the horizon stays roughly where it is."""
        rows, columns = self.backdrop.shape[:2]
        left = int(rng.integers(0, columns - 128))
        top = int(rng.integers(0, rows - 256))
        piece = self.backdrop[top : top + 256, left : left + 128]
        lit = piece * np.float32(rng.uniform(0.85, 1.1))
        return np.asarray(cv2.resize(lit, (width, height)), np.float32)

    def develop(self, scene: Floats, rng: np.random.Generator) -> NDArray[np.uint8]:
        """Turn the scene in front of the lens into the picture this camera stores."""
        width = scene.shape[1]
        light = self.exposure * np.exp(rng.normal(0, 0.16))
        slope = rng.normal(0, 0.16)  # light falls from one side
        across = np.linspace(-1, 1, width, dtype=np.float32)[None, :, None]
        linear = np.square(scene) * (light * (1 + slope * across))
        tint = np.exp(rng.normal(0, 0.03, 3)).astype(np.float32)  # white balance drifts
        linear = cv2.transform(
            np.ascontiguousarray(linear, np.float32), self.colour * tint[:, None]
        )
        picture = np.clip(linear, 0, 4) ** np.float32(self.gamma / 2)
        picture = self.haze + (1 - self.haze) * picture / (1 + 0.15 * picture)
        picture = self._soften(picture, rng)
        picture = 255 * picture + rng.standard_normal(picture.shape, np.float32) * self.noise
        stored = np.clip(picture, 0, 255).astype(np.uint8)
        _, coded = cv2.imencode(".jpg", stored, [cv2.IMWRITE_JPEG_QUALITY, self.quality])
        return np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)

    def _soften(self, picture: Floats, rng: np.random.Generator) -> Floats:
        height, width = picture.shape[:2]
        if self.detail < 1:
            small = (max(1, round(width * self.detail)), max(1, round(height * self.detail)))
            coarse = cv2.resize(picture, small, interpolation=cv2.INTER_AREA)
            picture = np.asarray(cv2.resize(coarse, (width, height)), np.float32)
        sigma = self.blur * rng.uniform(0.6, 1.4) * height / 128
        return np.asarray(cv2.GaussianBlur(picture, (0, 0), sigma), np.float32)


def _response(rng: np.random.Generator, cast: float) -> Floats:
    """Linear colour response (3, 3): a cast of fixed strength towards hue `cast`, and mixing."""
    thirds = np.array([0.0, 2.0, 4.0]) * np.pi / 3
    balance = np.exp(_CAST * np.cos(cast - thirds))
    mixing = np.eye(3) + rng.uniform(-0.12, 0.12, (3, 3)) * (1 - np.eye(3))
    mixed = mixing / mixing.sum(1, keepdims=True)
    return np.asarray(balance[:, None] / balance.mean() * mixed, np.float32)


def _scene(rng: np.random.Generator, height: int = 320, width: int = 640) -> Floats:
    """Paint a wall, a floor with tiles or grass, posts and patches of light."""
    horizon = int(rng.uniform(0.2, 0.6) * height)
    wall, floor = _surface_colour(rng), _surface_colour(rng)
    scene = np.empty((height, width, 3), np.float32)
    scene[:horizon], scene[horizon:] = wall, floor
    rows = np.arange(height)[:, None]
    columns = np.arange(width)[None, :]
    tile, joint = int(rng.integers(18, 60)), rng.uniform(0.75, 0.95)
    lines = (rows > horizon) & (((rows - horizon) % tile < 2) | ((columns + rows // 2) % tile < 2))
    scene[lines] *= joint
    for _ in range(int(rng.integers(4, 12))):  # doors, windows, posts, cars
        x, w = int(rng.integers(0, width)), int(rng.integers(6, 70))
        low = int(horizon + rng.integers(-10, 30))
        high = int(rng.integers(0, max(1, low - 10)))
        scene[high:low, x : x + w] = _surface_colour(rng)
    coarse = rng.standard_normal((height // 16, width // 16), np.float32)
    cloud = np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC))
    grain = rng.standard_normal((height, width), np.float32)
    scene *= (1 + 0.06 * cloud + 0.03 * grain)[..., None]
    return np.asarray(np.clip(cv2.GaussianBlur(scene, (0, 0), 1.5), 0, 1), np.float32)


def _surface_colour(rng: np.random.Generator) -> Floats:
    grey = rng.uniform(0.25, 0.8)
    return np.clip(grey + rng.normal(0, 0.03, 3), 0.05, 0.95).astype(np.float32)
