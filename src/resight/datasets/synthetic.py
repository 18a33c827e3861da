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

from resight.datasets._camera import Camera
from resight.datasets._clothing import Appearance
from resight.datasets._drawing import Figure, Pose
from resight.datasets.folders import TABLE
from resight.datasets.sightings import Sightings
from resight.datasets.table import write_table
from resight.errors import InputError
from resight.validation import check_count

_PERSON, _CAMERA, _SHOT, _WALK = 1, 2, 3, 4  # independent streams of random numbers for each seed


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


def _pose(rng: np.random.Generator, view: Camera, canvas: NDArray[np.float32]) -> Pose:
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


def _occlude(canvas: NDArray[np.float32], view: Camera, rng: np.random.Generator) -> None:
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
        top = int((0.6 + 0.3 * place) * height)
        cv2.rectangle(canvas, (0, top), (width, height), colour, -1)
    else:
        x = 0 if place < 0.5 else width
        axes = (int(0.35 * width), int(0.45 * height))
        cv2.ellipse(canvas, (x, height), axes, 0, 0, 360, colour, -1)


def _write_png(path: Path, image: NDArray[np.uint8]) -> None:
    _, coded = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(coded.tobytes())
