"""A demo gallery of synthetic cameras, copied for each test, and a client that talks to it."""

from __future__ import annotations

import shutil
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI

from resight import KXQDA
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery
from resight.models.model import Model
from resight.web.app import make_app
from resight.web.security import Guard
from resight.web.serving import Settings, server_config

START = 1.7e9


@dataclass(frozen=True)
class Demo:
    """A gallery folder, the pictures in it, and who is really who."""

    folder: Path
    sightings: Sightings
    truth: dict[str, str]

    def unlabelled_pairs(self, gallery: Gallery) -> list[tuple[str, str]]:
        """Sightings of each unlabelled person by the first two cameras."""
        view, pairs = gallery.view, []
        for person in sorted(set(self.truth.values())):
            ids = [key for key, who in self.truth.items() if who == person]
            ids.sort(key=lambda key: str(view.table.cameras[view.rows[key]]))
            if not view.persons[view.rows[ids[0]]]:
                pairs.append((ids[0], ids[1]))
        return pairs


@pytest.fixture(scope="session")
def demo_once(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Thirty people before three cameras; the first twelve are labelled and trained the model."""
    folder = tmp_path_factory.mktemp("demo")
    drawn = draw_cameras(folder / "cameras", n_people=30, n_cameras=3, seed=4)
    labelled = drawn.persons <= "0012"
    model = Model(("whos-star",), KXQDA())
    features = model.describe(drawn.files())
    model.fit(features[labelled], drawn.persons[labelled], drawn.cameras[labelled])
    times = START + 60.0 * np.arange(len(drawn))
    known = replace(drawn, persons=np.where(labelled, drawn.persons, ""), times=times)
    gallery = Gallery.create(folder / "gallery", model)
    gallery.add(known)
    table = gallery.view.table
    by_time = dict(zip(times.tolist(), drawn.persons.tolist(), strict=True))
    truth = {str(key): by_time[t] for key, t in zip(table.ids, table.times, strict=True)}
    gallery.close()  # so that the file holds everything and may be copied
    return Demo(folder / "gallery", known, truth)


@pytest.fixture
def demo(demo_once: Demo, tmp_path: Path) -> Demo:
    """A copy of the demo that a test may change."""
    shutil.copytree(demo_once.folder, tmp_path / "gallery")
    return replace(demo_once, folder=tmp_path / "gallery")


@pytest.fixture
def gallery(demo: Demo) -> Iterator[Gallery]:
    """The copied gallery."""
    opened = Gallery.open(demo.folder)
    yield opened
    opened.close()


class Browser(httpx.Client):
    """A browser without JavaScript, and the application it talks to."""

    app: FastAPI


@contextmanager
def browser(
    app: FastAPI, settings: Settings | None = None, verify: ssl.SSLContext | bool = True
) -> Iterator[Browser]:
    """Serve `app` on a free port of this machine and open a browser on it."""
    settings = settings or Settings()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(server_config(app, settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.005)
    scheme = "https" if settings.certfile else "http"
    address = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    with Browser(base_url=address, timeout=60, verify=verify) as made:
        made.app = app
        yield made
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture
def serve() -> Callable[..., AbstractContextManager[Browser]]:
    """Serve an application: ``with serve(app) as client``."""
    return browser


@pytest.fixture
def client(gallery: Gallery) -> Iterator[Browser]:
    """A browser on the gallery, on this machine."""
    with browser(make_app(gallery, Guard(gallery, login=False))) as made:
        yield made


@pytest.fixture
def csrf(client: Browser) -> str:
    """The word that this session's forms carry."""
    return str(client.get("/info.json").json()["csrf"])
