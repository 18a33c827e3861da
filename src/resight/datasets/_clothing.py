"""What a drawn person wears: colours, patterns, bags, hair; decided once for every camera."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

Colour = tuple[float, float, float]
Floats = NDArray[np.float32] | NDArray[np.float64]

# Hue in degrees, saturation and value of common cloth; how often as upper and lower garment.
# Neutral tones dominate, as in any street: they make different people alike.
_CLOTH = json.loads(Path(__file__).with_name("cloth.json").read_text("utf-8"))
_PATTERNS = ("plain", "bands", "pinstripes", "checks", "logo", "two-tone")
_SKIN = ((0.94, 0.78, 0.67), (0.87, 0.68, 0.54), (0.74, 0.54, 0.40), (0.52, 0.36, 0.26))
_HAIR = ((0.09, 0.08, 0.08), (0.20, 0.14, 0.10), (0.38, 0.26, 0.16), (0.66, 0.53, 0.34), (0.6,) * 3)


@dataclass(frozen=True)
class Cloth:
    """One piece of cloth: a colour, a second colour and the pattern that mixes them.

    Positions are in units of the person's height: `u` to the right of the body's axis, `v` above
    the ground.
    """

    colour: Colour
    second: Colour = (0.0, 0.0, 0.0)
    pattern: str = "plain"
    period: float = 1.0
    offset: float = 0.0

    def paint(self, u: Floats, v: Floats) -> Floats:
        """Colours at the given positions, (..., 3); a plain cloth broadcasts."""
        first = np.array(self.colour, np.float32)
        if self.pattern in ("plain", "logo"):  # a logo is a part of its own, see `_drawing`
            return first
        mix = self._mix(u, v)[..., None]
        return first + mix * (np.array(self.second, np.float32) - first)

    def _mix(self, u: Floats, v: Floats) -> Floats:
        down = ((v / self.period + self.offset) % 1 < 0.5).astype(np.float32)
        across = ((u / self.period + self.offset) % 1 < 0.5).astype(np.float32)
        if self.pattern == "bands":
            return down
        if self.pattern == "pinstripes":
            return across
        if self.pattern == "checks":
            return (down + across) / 2
        two_tone = v > 0.62 + 0.16 * self.offset  # a yoke of the second colour
        return two_tone.astype(np.float32)


class Appearance:
    """One person dressed at random: everything that stays the same from camera to camera."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.upper, lower = _cloth(rng, "upper"), _cloth(rng, "lower")
        self.lower_kind = str(rng.choice(["trousers", "shorts", "skirt"], p=[0.78, 0.08, 0.14]))
        lengths = {"trousers": 1.0, "shorts": 0.42, "skirt": rng.uniform(0.4, 0.9)}
        self.lower_length = float(lengths[self.lower_kind])
        rng.random()  # drawn for nothing: without it, all that follows would be another
        self.girth = float(np.clip(rng.normal(1.0, 0.11), 0.8, 1.35))
        self.skin = _shift(_SKIN[rng.integers(len(_SKIN))], rng, 0.03)
        hair = _HAIR[rng.choice(len(_HAIR), p=[0.4, 0.28, 0.14, 0.1, 0.08])]
        self.hair = _shift(hair, rng, 0.03)
        self.hair_length = float(rng.choice([0.0, 0.3, 1.0, 1.6], p=[0.08, 0.5, 0.27, 0.15]))
        self.hat = _cloth(rng, "upper") if rng.random() < 0.12 else None
        self.upper_length = float(rng.choice([0.0, 0.04, 0.16], p=[0.45, 0.4, 0.15]))
        self.sleeves = float(rng.choice([0.45, 1.0], p=[0.3, 0.7]))
        self.open_front = _cloth(rng, "upper").colour if rng.random() < 0.28 else None
        # Trousers and skirts carry a pattern only now and then.
        patterned = lower.pattern in ("checks", "pinstripes") and rng.random() < 0.5
        self.lower = lower if patterned else Cloth(lower.colour)
        self.shoes = _cloth(rng, "lower").colour
        bags, shares = ["none", "backpack", "shoulder", "hand"], [0.45, 0.25, 0.2, 0.1]
        self.bag = str(rng.choice(bags, p=shares))
        self.bag_cloth = _cloth(rng, "upper")
        self.bag_side = float(rng.choice([-1.0, 1.0]))


def _cloth(rng: np.random.Generator, worn: str) -> Cloth:
    """Choose a pattern, and colours by how common they are for `worn`, "upper" or "lower"."""
    pattern = _PATTERNS[rng.choice(len(_PATTERNS), p=[0.60, 0.09, 0.05, 0.07, 0.10, 0.09])]
    colour, second = (_cloth_colour(rng, worn) for _ in range(2))
    return Cloth(colour, second, pattern, float(rng.uniform(0.03, 0.09)), float(rng.random()))


def _cloth_colour(rng: np.random.Generator, worn: str) -> Colour:
    cloths = list(_CLOTH.values())
    weights = np.array([cloth[worn] for cloth in cloths])
    hue, saturation, value = cloths[rng.choice(len(cloths), p=weights / weights.sum())]["hsv"]
    hue += rng.normal(0, 7)
    saturation = np.clip(saturation + rng.normal(0, 0.07), 0, 1)
    value = np.clip(value * np.exp(rng.normal(0, 0.14)), 0.05, 0.95)
    pixel = np.array([[[hue % 360, saturation, value]]], np.float32)
    red, green, blue = cv2.cvtColor(pixel, cv2.COLOR_HSV2RGB)[0, 0].tolist()
    return (red, green, blue)


def _shift(colour: Colour, rng: np.random.Generator, spread: float) -> Colour:
    """Vary the brightness, and the tone a little."""
    change = rng.normal(0, spread) + rng.normal(0, spread / 4, 3)
    red, green, blue = np.clip(np.asarray(colour) + change, 0, 1).tolist()
    return (red, green, blue)
