"""`resight.connect` against the real server: the names of `Gallery`, over its JSON routes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import resight
from resight.client import RemoteGallery
from resight.datasets.synthetic import draw_cameras
from resight.errors import ConflictError, InputError, StoreError
from resight.gallery import Gallery, users
from resight.gallery.groups import group
from resight.gallery.jobs import Job, Worker
from resight.web.app import make_app
from resight.web.security import Guard


@pytest.fixture
def remote(gallery: Gallery, serve: Any) -> Iterator[RemoteGallery]:
    """A client with an administrator's token, and a worker that runs jobs."""
    users.add_user(gallery.engine, "ann", "administrator", "correct horse battery")
    token = users.issue(gallery.engine, "ann", "administrator", "token")
    app = make_app(gallery, Guard(gallery))
    worker = Worker(app.state.site.jobs)
    with serve(app) as browser:
        threading.Thread(target=worker.run, daemon=True).start()
        yield resight.connect(str(browser.base_url), token)
        worker.end()


def test_search_and_answers(remote: RemoteGallery, gallery: Gallery, demo: Any) -> None:
    assert len(remote) == len(gallery) == remote.info()["sightings"]
    query = demo.sightings.files()[0]
    camera = str(demo.sightings.cameras[0])
    hits = remote.search(query, k=5)
    assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
    assert hits[0].id == gallery.search(query, k=1)[0].id
    others = [one for one in gallery.view.cameras if one != camera]
    assert {hit.camera for hit in remote.search(query, cameras=others)} <= {*others}
    assert remote.image(hits[0].id) == gallery.image(hits[0].id)
    a, b = demo.unlabelled_pairs(gallery)[0]
    assert a not in [hit.id for hit in remote.search_like(a, k=5)]
    said = remote.teach("same", a, b)
    assert gallery.view.labels.person(a) == gallery.view.labels.person(b) != ""
    remote.teach("name", a, person="Zoë 王")
    assert gallery.view.labels.person(b) == "Zoë 王"
    remote.teach("undo", said.key)
    assert gallery.view.labels.person(b) == ""
    with pytest.raises(InputError, match="unknown condition 'age'"):
        remote.search_like(a, age=3)


def test_people(remote: RemoteGallery, gallery: Gallery) -> None:
    cards, total = remote.people(order="name")
    assert (cards, total) == (gallery.people(order="name")[0], 12)
    assert remote.people("0003")[0][0].name == "0003"
    remote.post("/people/rename", name="0001", new="Zoë", seen=cards[0].version)
    with pytest.raises(ConflictError, match="ann said 'name'"):
        remote.post("/people/rename", name="0001", new="Kim", seen=cards[0].version)
    merged = remote.post("/people/merge", name="Zoë", other="0002")
    assert remote.people("Zoë")[0][0].sightings == 6
    remote.teach("undo", merged["taught"]["key"])
    ids = gallery.view.table.ids[gallery.view.persons == "Zoë"].tolist()
    remote.post("/people/cover", name="Zoë", sighting=ids[2])
    remote.post("/people/split", name="Zoë", sighting=ids[:1], new="Kim")
    remote.post("/people/detach", name="Zoë", sighting=ids[1:2])
    assert remote.people("Zoë")[0][0].cover == ids[2]
    assert gallery.view.labels.person(ids[1]) == ""
    assert "Kim" in str(remote.get("/labels.json"))


def test_groups(remote: RemoteGallery, gallery: Gallery) -> None:
    group(gallery)
    first = remote.get("/unknowns.json")["group"]
    second = remote.get("/unknowns.json", after=first["key"])["group"]
    remote.post("/unknowns/accept", sighting=second["sightings"], name="Kim")
    assert {*gallery.view.persons[[gallery.view.rows[k] for k in second["sightings"]]]} == {"Kim"}
    assert remote.get("/unknowns.json")["group"] == first
    job = Job(**remote.post("/jobs/group"))
    assert remote.wait(job, every=0.05).state == "done"


def test_adding(remote: RemoteGallery, gallery: Gallery, tmp_path: Path) -> None:
    before = len(gallery)
    drawn = draw_cameras(tmp_path / "more", n_people=3, n_cameras=2, seed=77)
    job = remote.wait(remote.add(drawn), every=0.05)
    assert (job.state, job.done, job.total) == ("done", 6, 6)
    assert len(gallery) == before + 6
    again = remote.wait(remote.add(tmp_path / "more"), every=0.05)  # the folder, with its table
    assert (again.state, again.done) == ("done", 6)
    assert len(gallery) == before + 6
    assert [one["key"] for one in remote.get("/jobs.json")["jobs"] if one["kind"] == "add"] == [
        again.key,
        job.key,
    ]
    noise = np.random.default_rng(0).bytes(100)
    (tmp_path / "x.png").write_bytes(noise)
    failed = remote.wait(remote.add(tmp_path / "x.png", camera="door"), every=0.05)
    assert failed.failed == 1
    assert failed.failures[0][0] == "x.png"
    with pytest.raises(InputError, match="does not exist"):
        remote.add(tmp_path / "gone.png")


def test_wrong_tokens_and_addresses(remote: RemoteGallery) -> None:
    with pytest.raises(StoreError, match="log in first"):
        resight.connect(remote.address, "wrong").info()
    with pytest.raises(InputError, match="give that of the server"):
        resight.connect("gallery.example", "t")
    with pytest.raises(StoreError, match="is `resight serve` running"):
        resight.connect("http://127.0.0.1:9", "t").info()
    with pytest.raises(InputError, match="nobody"):
        remote.post("/people/rename", name="nobody", new="x")
