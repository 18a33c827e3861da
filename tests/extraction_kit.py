"""A real but tiny descriptor, quick images, and counting of what was described."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings


def tiny(log: Path | None = None, seconds: float = 0.0, version: str = "1") -> Any:
    """Mean colour over a 4 x 2 grid; `log` gets one line per image described."""

    class Tiny:  # local, so that it travels to workers by value
        name = "tiny"
        n_features = 24
        blocks = (24,)
        fingerprint = f"tiny-{version}"

        def describe(self, image: np.ndarray) -> np.ndarray:
            time.sleep(seconds)
            if log is not None:
                handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                os.write(handle, f"{int(image.astype(np.int64).sum())}\n".encode())
                os.close(handle)
            bands = [
                half for band in np.array_split(image, 4) for half in np.array_split(band, 2, 1)
            ]
            return np.concatenate([half.reshape(-1, 3).mean(axis=0) for half in bands])

    return Tiny()


def write_images(folder: Path, count: int, seed: int = 0) -> Sightings:
    """Write small images of noise: two cameras, one image of every person in each."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [f"{index:04d}.png" for index in range(count)]
    for path in paths:
        pixels = rng.integers(0, 256, (16, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / path)
    numbers = np.arange(count)
    return Sightings(
        paths=np.array(paths),
        persons=(numbers // 2).astype(str),
        cameras=(numbers % 2).astype(str),
        root=folder,
        name="noise",
    )


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its contents."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def sightings(tmp_path: Path) -> Sightings:
    return write_images(tmp_path / "images", 100)


class Kit:
    """The helpers above for tests, which cannot import from a conftest."""

    tiny = staticmethod(tiny)
    write_images = staticmethod(write_images)
    tree = staticmethod(tree)
    file = Path(__file__)


@pytest.fixture(scope="session")
def kit() -> type[Kit]:
    return Kit
