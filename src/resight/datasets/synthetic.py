"""Synthetic cameras: pedestrians that the package draws itself, seeded, in any number.

The people differ in build, skin, hair, clothing, bags and hats; the cameras differ in colour
response, exposure, viewpoint, sharpness, noise, compression and background. What a camera does to
colours is the same in all of its pictures and can therefore be learned; pose, occlusion,
crop and light change from picture to picture and cannot. No real person is shown, so the pictures
may be published.

Pictures depend on `seed`, person, camera and shot only: not on how many others are drawn, in which
order, or on which machine (up to rounding in other versions of OpenCV and numpy).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.datasets._clothing import Appearance
from resight.datasets._drawing import Figure, Pose
from resight.datasets.folders import TABLE
from resight.datasets.sightings import Sightings
from resight.datasets.table import write_table
from resight.errors import InputError
from resight.validation import check_count

Floats = NDArray[np.float32]
_PERSON, _CAMERA, _SHOT, _WALK = 1, 2, 3, 4  # independent streams of random numbers for each seed
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))  # multiples of it never come close to each other
_CAST = 0.2  # logarithm of the gain of a camera's strongest channel


def draw_person(
    person_seed: int,
    camera: int = 0,
    *,
    shot: int = 0,
    seed: int = 0,
    size: tuple[int, int] = (128, 64),
) -> NDArray[np.uint8]:
    """Draw one person as one camera sees them once.

    Parameters
    ----------
    person_seed : int
        Which person: the same number looks the same everywhere (up to what cameras do).
    camera : int, default=0
        Which camera of this `seed`.
    shot : int, default=0
        Which picture: other pose, crop, light and noise.
    seed : int, default=0
        Which town: other people, other cameras.
    size : (int, int), default=(128, 64)
        Height and width in pixels.

    Returns
    -------
    uint8 array (height, width, 3)
        RGB.

    Examples
    --------
    >>> draw_person(7, camera=1).shape
    (128, 64, 3)
    """
    numbers = {"person_seed": person_seed, "camera": camera, "shot": shot, "seed": seed}
    for name, number in numbers.items():
        check_count(number, name, 0)
    height, width = size
    if min(size) < 16:
        raise InputError(f"size {size} is too small to draw a person; give at least 16 x 16 pixels")
    view = _camera(seed, camera)
    rng = np.random.default_rng([seed, _SHOT, person_seed, camera, shot])
    canvas = view.background(rng, 2 * height, 2 * width)
    Figure(canvas, _appearance(seed, person_seed), _pose(rng, view, canvas)).paint()
    _occlude(canvas, view, rng)
    scene = cv2.resize(canvas, (width, height), interpolation=cv2.INTER_AREA)
    return view.develop(np.asarray(scene, np.float32), rng)


def draw_cameras(
    folder: str | Path,
    n_people: int,
    n_cameras: int = 2,
    images_per_camera: int = 1,
    seed: int = 0,
    distractors: int = 0,
    size: tuple[int, int] = (128, 64),
) -> Sightings:
    """Draw people seen by every camera, and write ``<camera>/<person>/<shot>.png`` below `folder`.

    Roles and times go into ``sightings.csv`` beside them, so that `resight.datasets.load` of the
    folder gives the same sightings back. Pictures of an earlier, larger drawing in the same folder
    are not removed, but the table does not name them.

    Parameters
    ----------
    folder : path
    n_people, n_cameras, images_per_camera : int
        Every person is drawn `images_per_camera` times in each of `n_cameras` cameras.
    seed : int, default=0
        Same seed, same pictures.
    distractors : int, default=0
        People whom nobody asks for (role "distractor"), seen by the last camera only.
    size : (int, int), default=(128, 64)
        Height and width in pixels.

    Returns
    -------
    Sightings
        One row a picture, ordered by camera, person and shot. Cameras are called "camera-1",
        "camera-2", ..., persons "0001", "0002", ...

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sightings = draw_cameras(folder, n_people=3)
    >>> len(sightings), sorted(set(sightings.cameras.tolist()))
    (6, ['camera-1', 'camera-2'])
    """
    check_count(distractors, "distractors", 0)
    check_count(n_people, "n_people")
    check_count(n_cameras, "n_cameras")
    check_count(images_per_camera, "images_per_camera")
    root, digits = Path(folder), max(4, len(str(n_people + distractors)))
    rows: list[tuple[str, str, str, str, float]] = []
    for view in range(n_cameras):
        camera = f"camera-{view + 1:0{len(str(n_cameras))}d}"  # names sort as the numbers do
        n_seen = n_people + (distractors if view == n_cameras - 1 else 0)
        for person, shot in np.ndindex(n_seen, images_per_camera):
            label, role = f"{person + 1:0{digits}d}", "" if person < n_people else "distractor"
            path = f"{camera}/{label}/{shot + 1:04d}.png"
            _write_png(root / path, draw_person(person, view, shot=shot, seed=seed, size=size))
            rows.append((path, label, camera, role, _arrival(seed, person, view) + shot))
    paths, persons, cameras, roles, times = (np.array(c) for c in zip(*rows, strict=True))
    sightings = Sightings(
        paths, persons, cameras, times=times, roles=roles, root=root, name=root.resolve().name
    )
    write_table(sightings, root / TABLE)
    return sightings


def _arrival(seed: int, person: int, view: int) -> float:
    """Whole seconds after midnight: out in the morning, then from camera to camera in order."""
    rng = np.random.default_rng([seed, _WALK, person])
    start = rng.integers(8 * 3600, 18 * 3600)
    return float(start + rng.integers(60, 600, size=view + 1).sum())


@lru_cache(maxsize=64)
def _camera(seed: int, index: int) -> Camera:
    phase = np.random.default_rng([seed, _CAMERA]).uniform(0, 2 * np.pi)
    return Camera(np.random.default_rng([seed, _CAMERA, index]), index, phase)


@lru_cache(maxsize=4096)
def _appearance(seed: int, person: int) -> Appearance:
    return Appearance(np.random.default_rng([seed, _PERSON, person]))


def _pose(rng: np.random.Generator, view: Camera, canvas: Floats) -> Pose:
    """Let a person walk by: mostly along the camera's path, one way or the other."""
    height, width = canvas.shape[:2]
    turn = np.pi if rng.random() < 0.2 else 0.0
    scale = height * rng.uniform(0.82, 0.94)
    return Pose(
        yaw=view.yaw + turn + rng.normal(0, 0.3),
        phase=rng.uniform(0, 2 * np.pi),
        stride=rng.uniform(0.15, 0.5),
        elevation=view.elevation,
        centre=width * (0.5 + rng.normal(0, 0.04)),
        feet=height * (0.97 + rng.normal(0, 0.02)),
        scale=scale,
        lean=rng.normal(0, 0.02),
    )


def _occlude(canvas: Floats, view: Camera, rng: np.random.Generator) -> None:
    """Put a post, a rail or a passer-by's shoulder in front, as often as the camera has it."""
    kind, place = rng.random(), rng.uniform(0.1, 0.9)
    tone = np.clip(rng.uniform(0.1, 0.6) + rng.normal(0, 0.04, 3), 0, 1)
    if rng.random() >= view.occlusion:
        return
    height, width = canvas.shape[:2]
    colour = tone.tolist()
    if kind < 0.4:
        x, half = int(place * width), int(0.06 * width)
        cv2.rectangle(canvas, (x - half, 0), (x + half, height), colour, -1)
    elif kind < 0.7:
        cv2.rectangle(canvas, (0, int((0.6 + 0.3 * place) * height)), (width, height), colour, -1)
    else:
        x = 0 if place < 0.5 else width
        axes = (int(0.35 * width), int(0.45 * height))
        cv2.ellipse(canvas, (x, height), axes, 0, 0, 360, colour, -1)


def _write_png(path: Path, image: NDArray[np.uint8]) -> None:
    _, coded = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(coded.tobytes())


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
        linear = cv2.transform(np.asarray(linear, np.float32), self.colour * tint[:, None])
        picture = np.clip(linear, 0, 4) ** np.float32(self.gamma / 2)
        picture = self.haze + (1 - self.haze) * picture / (1 + 0.15 * picture)
        picture = self._soften(np.asarray(picture, np.float32), rng)
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
    balance = np.exp(_CAST * np.cos(cast - np.array([0.0, 2.0, 4.0]) * np.pi / 3))
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
    return np.clip(rng.uniform(0.25, 0.8) + rng.normal(0, 0.03, 3), 0.05, 0.95).astype(np.float32)
