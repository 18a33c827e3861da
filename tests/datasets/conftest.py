"""Small folders of drawn pictures in every layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import cv2
import pytest

from resight.datasets.synthetic import draw_person

Fill = Callable[[Iterable[str]], Path]


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Write drawn pictures under the given relative paths, all different; return the folder."""

    def write(names: Iterable[str]) -> Path:
        for number, name in enumerate(names):
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(file), draw_person(number, size=(32, 16))[..., ::-1])
        return tmp_path

    return write
