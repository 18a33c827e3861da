from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resight.datasets.sightings import Sightings
from resight.gallery import Gallery
from resight.gallery.checking import check

CHILD = """
import sys, resource, signal
import numpy as np
sys.path.insert(0, sys.argv[1])
import toymodel
from resight.datasets.sightings import Sightings
from resight.errors import StoreError
from resight.gallery import Gallery
paths = np.array(sys.argv[3:])
gallery = Gallery.open(sys.argv[2])
gallery.add(Sightings(paths[:3], np.full(3, ""), np.full(3, "door")))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    gallery.add(Sightings(paths[3:], np.full(len(paths) - 3, ""), np.full(len(paths) - 3, "door")))
except StoreError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
def test_a_full_disk_loses_nothing(
    tmp_path: Path, people: Sightings, model: Callable[..., Any]
) -> None:
    """The system refuses every byte beyond a limit, as it does when the disk is full."""
    assert hasattr(resource, "RLIMIT_FSIZE")
    uri = str(tmp_path / "gallery")
    gallery = Gallery.create(uri, model())
    files = [str(file) for file in people.files()]
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, here, uri, *files], capture_output=True, text=True, check=True
    )
    assert "the disk is full" in done.stdout
    assert "everything before it is safe" in done.stdout
    assert len(gallery) == 3
    report = check(uri)
    assert report.clean, report.problems
    gallery.add(people)
    assert len(gallery) == 39
