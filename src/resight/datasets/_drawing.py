"""Draw one dressed person in a pose: a small skeleton in space, turned, projected, painted.

The body frame has its origin on the ground below the hips, in units of the body height:
`lateral` to the person's left, `up`, `forward`. Turning it by `yaw` (0 = towards the viewer, 90
degrees = to the right of the picture) gives screen positions and depths, so that front, side and
back views show what they should: a backpack from behind, an open jacket from the front.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.datasets._clothing import Appearance, Cloth, Colour

Point = tuple[float, float, float]
_HIP, _SHOULDER, _NECK, _HEAD = 0.50, 0.815, 0.86, 0.925
_THIGH, _SHIN, _UPPER_ARM, _FOREARM = 0.235, 0.225, 0.155, 0.16
_TURN = np.linspace(0, 2 * np.pi, 16, endpoint=False)
_CIRCLE = np.stack([np.cos(_TURN), np.sin(_TURN)], axis=1)  # (16, 2)
_HALF_CIRCLE = _CIRCLE[[12, 14, 0, 2, 4]]  # (5, 2), from -90 to 90 degrees


@dataclass(frozen=True)
class Pose:
    """How one person stands in one picture; centre, feet and scale (height) are in pixels."""

    yaw: float
    phase: float
    stride: float
    elevation: float
    centre: float
    feet: float
    scale: float
    lean: float


class Figure:
    """One person being painted, in place, onto a picture (height, width, 3) of values in [0, 1]."""

    def __init__(self, canvas: NDArray[np.float32], looks: Appearance, pose: Pose) -> None:
        self.canvas, self.looks, self.pose = canvas, looks, pose
        self.cos, self.sin = float(np.cos(pose.yaw)), float(np.sin(pose.yaw))
        self.tilt_cos, self.tilt_sin = float(np.cos(pose.elevation)), float(np.sin(pose.elevation))

    def paint(self) -> None:
        """Paint all parts, the farthest first."""
        legs = sorted((self._depth(side * 0.05), side) for side in (-1.0, 1.0))
        arms = sorted((self._depth(side * 0.12), side) for side in (-1.0, 1.0))
        behind = self.cos > 0  # what hangs on the back is hidden by the body in a front view
        self._arm(arms[0][1])
        if behind:
            self._back()
        for _, side in legs:
            self._leg(side)
        self._trunk()
        self._head(in_front=behind)
        if not behind:
            self._back()
        self._arm(arms[1][1])
        self._bag_at_side()

    def _depth(self, lateral: float, forward: float = 0.0) -> float:
        return forward * self.cos - lateral * self.sin

    def _screen(self, lateral: float, up: float, forward: float) -> tuple[float, float]:
        """Pixel of a point of the body frame (parallel projection, seen from above)."""
        pose = self.pose
        right = (lateral + pose.lean * up) * self.cos + forward * self.sin
        height = up * self.tilt_cos - self._depth(lateral, forward) * self.tilt_sin
        return pose.centre + pose.scale * right, pose.feet - pose.scale * height

    def _width(self, broad: float, deep: float) -> float:
        """Half width on screen of an upright elliptic body part."""
        return self.looks.girth * float(np.hypot(broad * self.cos, deep * self.sin))

    def _leg(self, side: float) -> None:
        looks, pose = self.looks, self.pose
        swing = pose.stride * np.sin(pose.phase + (np.pi if side > 0 else 0.0))
        bend = pose.stride * max(0.0, float(np.cos(pose.phase + (np.pi if side > 0 else 0.0))))
        hip = (side * 0.045 * looks.girth, _HIP, 0.0)
        knee = _along(hip, swing + 0.25 * bend, _THIGH)
        ankle = _along(knee, swing - 0.9 * bend, _SHIN)
        toe = (ankle[0] + side * 0.012, ankle[1] - 0.03, ankle[2] + 0.075)
        thick = (0.058 * looks.girth, 0.040 * looks.girth, 0.030 * looks.girth)
        self._limb(ankle, toe, 0.026, 0.020, Cloth(looks.shoes))
        skin = Cloth(looks.skin)
        bare = looks.lower_kind != "trousers"
        self._limb(knee, ankle, thick[1], thick[2], skin if bare else looks.lower)
        self._limb(hip, knee, thick[0], thick[1], looks.lower)
        if looks.lower_kind == "shorts":
            self._limb(_between(hip, knee, 0.8), knee, thick[1], thick[1], skin)

    def _arm(self, side: float) -> None:
        looks, pose = self.looks, self.pose
        swing = 0.8 * pose.stride * np.sin(pose.phase + (0.0 if side > 0 else np.pi))
        shoulder = (side * 0.112 * looks.girth, _SHOULDER - 0.025, 0.0)
        elbow = _along(shoulder, swing - 0.08, _UPPER_ARM, outwards=side * 0.03)
        hand = _along(elbow, swing + 0.25, _FOREARM)
        skin, thick = Cloth(looks.skin), 0.034 * looks.girth
        self._limb(elbow, hand, 0.8 * thick, 0.6 * thick, skin)
        if looks.sleeves == 1.0:
            self._limb(elbow, _between(elbow, hand, 0.85), 0.9 * thick, 0.8 * thick, looks.upper)
            self._limb(shoulder, elbow, thick, 0.9 * thick, looks.upper)
        else:
            self._limb(shoulder, elbow, 0.9 * thick, 0.8 * thick, skin)
            sleeve = _between(shoulder, elbow, 2 * looks.sleeves * 0.8)
            self._limb(shoulder, sleeve, 1.1 * thick, 1.05 * thick, looks.upper)
        if looks.bag == "hand" and side == looks.bag_side:
            self._limb(hand, (hand[0], hand[1] - 0.10, hand[2]), 0.05, 0.06, looks.bag_cloth)

    def _trunk(self) -> None:
        looks = self.looks
        if looks.lower_kind == "skirt":
            hem = _HIP - looks.lower_length * (_THIGH + 0.6 * _SHIN)
            flare = self._width(0.095, 0.085) * (1.05 + 0.25 * looks.lower_length)
            self._upright([(_HIP + 0.08, self._width(0.085, 0.07)), (hem, flare)], looks.lower)
        else:
            top, bottom = self._width(0.085, 0.068), self._width(0.092, 0.075)
            self._upright([(_HIP + 0.06, top), (_HIP - 0.04, bottom)], looks.lower)
        hem = _HIP + 0.02 - looks.upper_length
        outline = [
            (_NECK - 0.012, self._width(0.035, 0.04)),
            (_SHOULDER + 0.008, self._width(0.105, 0.06)),
            (_SHOULDER - 0.06, self._width(0.118, 0.075)),
            (_HIP + 0.12, self._width(0.098, 0.072)),
            (hem, self._width(0.102, 0.082) * (1 + looks.upper_length)),
        ]
        self._upright(outline, looks.upper)
        if self.cos > 0.15:
            self._front(hem)

    def _front(self, hem: float) -> None:
        """Shirt under an open jacket, or a print on the chest: seen from the front only."""
        looks = self.looks
        shift = 0.075 * looks.girth * self.sin
        if looks.open_front is not None:
            half = 0.042 * looks.girth * self.cos
            strip = [(_NECK - 0.015, 0.6 * half), (hem + 0.01, half)]
            self._upright(strip, Cloth(looks.open_front), shift)
        elif looks.upper.pattern == "logo":
            half = (0.03 + looks.upper.period * 0.4) * self.cos
            middle = _SHOULDER - 0.10
            strip = [(middle + 0.035, half), (middle - 0.035, half)]
            self._upright(strip, Cloth(looks.upper.second), shift)

    def _head(self, in_front: bool) -> None:
        looks = self.looks
        self._limb((0, _NECK - 0.02, 0), (0, _HEAD - 0.03, 0), 0.028, 0.028, Cloth(looks.skin))
        self._ellipse((0, _HEAD, 0.0), 0.046, 0.062, looks.skin)
        if looks.hair_length > 0:
            if in_front:
                self._ellipse((0, _HEAD + 0.036, -0.02), 0.047, 0.032, looks.hair)
                if abs(self.sin) > 0.4:
                    self._ellipse((0, _HEAD + 0.012, -0.025), 0.034, 0.05, looks.hair)
            else:
                self._ellipse((0, _HEAD + 0.008, -0.012), 0.048, 0.056, looks.hair)
        if looks.hat is not None:
            self._ellipse((0, _HEAD + 0.042, 0.0), 0.052, 0.03, looks.hat.colour)
            self._ellipse((0, _HEAD + 0.03, 0.035), 0.04, 0.012, looks.hat.colour)

    def _back(self) -> None:
        """Long hair and the backpack."""
        looks = self.looks
        if looks.hair_length >= 1:
            low = _HEAD - 0.07 * looks.hair_length
            self._limb((0, _HEAD, -0.02), (0, low, -0.035), 0.046, 0.04, Cloth(looks.hair))
        if looks.bag == "backpack":
            half, out = self._width(0.075, 0.045), -0.105 * looks.girth
            outline = [(_SHOULDER - 0.0, 0.8 * half), (_SHOULDER - 0.05, half)]
            outline += [(_HIP + 0.08, half), (_HIP + 0.06, 0.85 * half)]
            self._upright(outline, looks.bag_cloth, out * self.sin)

    def _bag_at_side(self) -> None:
        """Straps of a backpack, or a shoulder bag with its strap across the chest."""
        looks, front = self.looks, self.cos > 0
        strap = Cloth(looks.bag_cloth.colour)
        if looks.bag == "backpack" and front:
            for side in (-0.07, 0.07):
                high, low = (side, _SHOULDER, 0.06), (side * 1.1, _HIP + 0.14, 0.075)
                self._limb(high, low, 0.011, 0.011, strap)
        if looks.bag == "shoulder":
            side = looks.bag_side
            reach = 0.07 if front else -0.07
            hip = (side * 0.115 * looks.girth, _HIP + 0.06, 0.0)
            self._limb((-side * 0.07, _SHOULDER + 0.01, reach * 0.5), hip, 0.009, 0.009, strap)
            if self._depth(hip[0]) > -0.06:
                low = (hip[0], hip[1] - 0.09, hip[2])
                self._limb(hip, low, 0.05, 0.055, looks.bag_cloth)

    def _limb(self, start: Point, end: Point, wide: float, narrow: float, cloth: Cloth) -> None:
        """Paint a tapered capsule between two points of the body frame."""
        first, last = np.array(self._screen(*start)), np.array(self._screen(*end))
        along = last - first
        along /= max(float(np.hypot(*along)), 1e-6)
        across = np.array([-along[1], along[0]])
        cap = _HALF_CIRCLE @ np.stack([along, across])  # (5, 2), around the far end
        scale = self.pose.scale
        outline = np.concatenate([first - wide * scale * cap, last + narrow * scale * cap])
        self._fill(outline, cloth)

    def _upright(self, shape: list[tuple[float, float]], cloth: Cloth, shift: float = 0.0) -> None:
        """Paint a part symmetric about the body's axis: (height, half width) from top to bottom."""
        left, right = [], []
        for up, half in shape:
            x, y = self._screen(0.0, up, 0.0)
            x += shift * self.pose.scale
            left.append((x - half * self.pose.scale, y))
            right.append((x + half * self.pose.scale, y))
        self._fill(np.array(left + right[::-1]), cloth)

    def _ellipse(self, centre: Point, broad: float, tall: float, colour: Colour) -> None:
        ring = self._screen(*centre) + _CIRCLE * (broad * self.pose.scale, tall * self.pose.scale)
        self._fill(ring, Cloth(colour))

    def _fill(self, outline: NDArray[np.float64], cloth: Cloth) -> None:
        """Fill a polygon with cloth, darker towards its edges as a round body is."""
        height, width = self.canvas.shape[:2]
        x0, y0 = np.maximum(np.floor(outline.min(0)).astype(int), 0)
        x1, y1 = np.minimum(np.ceil(outline.max(0)).astype(int) + 1, (width, height))
        if x1 <= x0 or y1 <= y0:
            return
        mask = np.zeros((y1 - y0, x1 - x0), np.uint8)
        cv2.fillPoly(mask, [np.round(outline - (x0, y0)).astype(np.int32)], 1)
        rim = 0.03 * self.pose.scale
        depth = cv2.distanceTransform(mask, cv2.DIST_L1, 3)
        shade = 0.72 + 0.28 * np.minimum(depth, rim) / rim
        u = (np.arange(x0, x1, dtype=np.float32)[None, :] - self.pose.centre) / self.pose.scale
        v = (self.pose.feet - np.arange(y0, y1, dtype=np.float32)[:, None]) / self.pose.scale
        painted = np.asarray(cloth.paint(u, v) * shade[..., None], np.float32)
        cv2.copyTo(painted, mask, self.canvas[y0:y1, x0:x1])


def _along(start: Point, angle: float, length: float, outwards: float = 0.0) -> Point:
    """End of a bone that hangs from `start`, swung forwards by `angle`."""
    lateral, up, forward = start
    down, ahead = length * float(np.cos(angle)), length * float(np.sin(angle))
    return lateral + outwards, up - down, forward + ahead


def _between(start: Point, end: Point, part: float) -> Point:
    lateral, up, forward = (a + part * (b - a) for a, b in zip(start, end, strict=True))
    return (lateral, up, forward)
