"""How long the pages take: 50,000 sightings, 5,000 people, 1,000 groups of unknowns.

Each page is asked for in turn with the bare index search (embedding given, 24 nearest of all) and
with a page that holds nothing but the frame, in one run, by one client over HTTP. The limit is 5
times the bare search plus that empty page. Medians of processor time of the server's process, so
that whatever else the machine does is left out.

Then `resight serve` is searched by 1, 8 and 32 clients at once, each for another sighting: what a
search costs the processor of the server, which answers queries that come together by one product.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import httpx
import numpy as np
import psutil
import uvicorn
from threadpoolctl import threadpool_limits

from resight import KXQDA
from resight.gallery import Gallery
from resight.gallery.engines.base import Rows, Table
from resight.gallery.groups import Group, Groups
from resight.models.model import Model
from resight.web.app import make_app
from resight.web.security import Guard
from resight.web.serving import Settings, listen, server_config

N, FEATURES, TRAINED, WIDTH = 50_000, 384, 600, 256  # vectors of a network, say
PEOPLE, GROUPS, ROUNDS, LIMIT, K = 5_000, 1_000, 7, 5.0, 24
CLIENTS, SEARCHES = (1, 8, 32), 96
PAGES = {
    "start page": "/",
    "people": "/people",
    "unknowns": "/unknowns",
    "search": "/search?like={}",
}


def run() -> str:
    """Measure and write a table."""
    with tempfile.TemporaryDirectory(dir=".") as folder, threadpool_limits(1):
        gallery = filled(Path(folder) / "gallery")
        index = gallery.view.index
        assert index is not None
        like, query = str(gallery.view.table.ids[0]), index.embeddings[:1]
        with served(gallery) as ask:
            works: dict[str, Callable[[], object]] = {
                "bare index search": lambda: index.search(query, K, None),
                "empty page": lambda: ask("/nowhere"),
            }
            works |= {name: partial(ask, path.format(like)) for name, path in PAGES.items()}
            seconds = _in_turn(works)
        gallery.close()
        loads = _loads(Path(folder) / "gallery")
    bare, empty = seconds["bare index search"], seconds["empty page"]
    limit = LIMIT * bare + empty
    rows = [
        f"| {name} | {1e3 * value:.1f} | {value / limit:.2f} |" for name, value in seconds.items()
    ]
    head = "| page | ms of the processor | part of the limit |\n|---|---|---|\n"
    told = [f"| {n} | {1e3 * value:.1f} | {value / loads[1]:.2f} |" for n, value in loads.items()]
    more = "| clients | ms of the processor a search | part of one client's |\n|---|---|---|\n"
    sentence = f"The limit is {1e3 * limit:.1f} ms. One search through the page takes "
    sentence += f"{seconds['search'] / bare:.1f} times the bare index search."
    return f"{head}{chr(10).join(rows)}\n\n{sentence}\n\n{more}{chr(10).join(told)}\n"


def _loads(place: Path) -> dict[int, float]:
    """Return the processor time of a search for each number of clients."""
    words = [sys.executable, "-m", "resight", "serve", str(place), "--no-login", "--no-browser"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        lines = iter(process.stderr)
        address = next(found[0] for found in (re.search(r"http://\S+/", x) for x in lines) if found)
        _searches(address, 1, 10)  # fill what is computed once
        server = psutil.Process(process.pid)
        taken: dict[int, list[float]] = {n: [] for n in CLIENTS}
        for n in CLIENTS * 3:
            before = sum(server.cpu_times()[:2])
            _searches(address, n, SEARCHES)
            taken[n].append((sum(server.cpu_times()[:2]) - before) / SEARCHES)
    finally:
        process.terminate()
        process.wait()
    return {n: median(values) for n, values in taken.items()}


def _searches(address: str, clients: int, total: int) -> None:
    """Search for so many sightings, by several clients at once."""
    numbers = itertools.count()

    def work() -> None:
        with httpx.Client(base_url=address, timeout=600) as client:
            while (number := next(numbers)) < total:
                client.get(f"/search?like={37 * number % N:024x}").raise_for_status()

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _in_turn(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number in range(ROUNDS + 1):
        for name, work in works.items():
            begin = time.process_time()
            work()
            if number:  # the first round is not measured: it fills what is computed once
                taken[name].append(time.process_time() - begin)
    return {name: median(values) for name, values in taken.items()}


class served:  # noqa: N801  # used as a function
    """Serve a gallery in a thread; gives a function that asks for a path."""

    def __init__(self, gallery: Gallery) -> None:
        self._listener = listen("127.0.0.1", 0)
        app = make_app(gallery, Guard(gallery, login=False))
        self._server = uvicorn.Server(server_config(app, Settings()))
        sockets = {"sockets": [self._listener]}
        self._thread = threading.Thread(target=self._server.run, kwargs=sockets)

    def __enter__(self) -> Callable[[str], httpx.Response]:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._client = httpx.Client(base_url=address, timeout=600)

        def ask(path: str) -> httpx.Response:
            answer = self._client.get(path)
            if answer.status_code not in (200, 404):
                raise AssertionError(f"{path}: {answer.status_code} {answer.text[:500]}")
            return answer

        return ask

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()


def filled(place: Path) -> Gallery:
    """Fill a gallery: five sightings of each person, the other half unknown."""
    rng = np.random.default_rng(1)
    cameras = np.resize(np.array(["yard", "door"]), N)
    vectors = rng.random((N, FEATURES), dtype=np.float32)
    learner = KXQDA(kernel="linear", n_components=WIDTH)
    model = Model((), learner).fit(vectors[:TRAINED], np.arange(TRAINED) // 2, cameras[:TRAINED])
    gallery, stored = Gallery.create(place, model), vectors.astype(np.float16)
    ids, number, text = np.array([f"{i:024x}" for i in range(N)]), np.arange(N) // 5, np.full(N, "")
    persons = np.where(number < PEOPLE, np.char.add("person ", number.astype(str)), "")
    table = Table(ids, persons, cameras, 1.7e9 + np.arange(float(N)), text, text, np.zeros(N))
    for rows in np.array_split(np.arange(N), 50):
        embeddings = np.asarray(model.embed(vectors[rows]), np.float32)
        images = [b"image"] * len(rows)
        gallery.engine.add(Rows(table.select(rows), images, stored[rows], embeddings), 1)
    unknown = ids[persons == ""][: 5 * GROUPS].reshape(GROUPS, 5)
    groups = [Group(f"{n}", some.tolist(), 0.9) for n, some in enumerate(unknown)]
    current = gallery.view.manifest.current.fingerprint
    Groups(current, N, "", "hand", groups, unknown[0].tolist()).store(gallery.engine)
    return gallery
