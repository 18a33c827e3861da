"""Adding from the page: what is streamed, queued, refused, cancelled, and kept."""

from __future__ import annotations

import io
import socket
import zipfile
from typing import Any

import pytest

from resight.gallery import Gallery
from resight.gallery.jobs import Worker

JSON = {"Accept": "application/json"}


def work(client: Any) -> None:
    while Worker(client.app.state.site.jobs).work_once():
        pass


def files(demo: Any, n: int, folder: str = "") -> list[tuple[str, tuple[str, bytes]]]:
    paths = demo.sightings.files()[:n]
    return [("file", (f"{folder}{i}.png", p.read_bytes())) for i, p in enumerate(paths)]


def test_images_and_what_failed(client: Any, gallery: Gallery, demo: Any, csrf: str) -> None:
    sent = [*files(demo, 3), ("file", ("broken.png", b"no image"))]
    form = {"csrf": csrf, "camera": "yard"}
    job = client.post("/jobs/add", files=sent, data=form, headers=JSON).json()
    assert (job["kind"], job["state"], job["by"]["who"]) == ("add", "queued", "anybody")
    assert "Waiting" in client.get("/add").text
    work(client)
    done = client.get(f"/jobs/{job['key']}.json").json()
    assert (done["state"], done["done"], done["total"], done["failed"]) == ("done", 3, 4, 1)
    page = client.get("/add").text
    assert "1 file could not be added" in page
    assert "broken.png" in page
    assert (gallery.view.table.cameras == "yard").sum() == 3
    client.post("/jobs/add", files=sent, data=form)  # again: nothing twice
    work(client)
    assert len(gallery) == 93


def test_a_folder_and_a_zip_of_folders(client: Any, gallery: Gallery, demo: Any, csrf: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, (file, content) in files(demo, 2, "gate/"):
            archive.writestr(file, content)
            assert name
    sent = [*files(demo, 2, "dock/"), ("file", ("more.zip", buffer.getvalue()))]
    client.post("/jobs/add", files=sent, data={"csrf": csrf})
    work(client)
    assert {"dock", "gate"} <= {*gallery.view.cameras}


def test_a_zip_bomb_is_refused_and_leaves_nothing(
    client: Any, gallery: Gallery, demo: Any, csrf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resight.gallery.spool.MAX_UNPACKED", 2**20)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/large.png", bytes(4 * 2**20))
    sent = [("file", ("bomb.zip", buffer.getvalue()))]
    job = client.post("/jobs/add", files=sent, data={"csrf": csrf}, headers=JSON).json()
    work(client)
    done = client.get(f"/jobs/{job['key']}.json").json()
    assert done["state"] == "failed"
    assert "unpacks to more than" in done["words"]
    assert list((demo.folder / "spool").iterdir()) == []


def test_forms_that_are_not_ours_leave_nothing(client: Any, gallery: Gallery, demo: Any) -> None:
    assert client.post("/jobs/add", files=files(demo, 1)).status_code == 403
    assert client.post("/jobs/add", content=b"x", headers=JSON).status_code == 422
    assert list((demo.folder / "spool").iterdir()) == []
    assert client.get("/jobs.json").json()["jobs"] == []


@pytest.mark.parametrize("name", ["../../evil.png", "/etc/evil.png", "a/../../evil.png"])
def test_names_cannot_leave_the_upload(client: Any, demo: Any, csrf: str, name: str) -> None:
    content = demo.sightings.files()[0].read_bytes()
    sent = [("file", (name, content))]
    answer = client.post("/jobs/add", files=sent, data={"csrf": csrf}, headers=JSON)
    assert answer.status_code == 422
    assert "without '..'" in answer.json()["error"]


def test_more_than_the_limit_is_refused_before_it_is_read(client: Any) -> None:
    head = f"POST /jobs/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {3 * 2**30}\r\n\r\n"
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=30) as line:
        line.sendall(head.encode())
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"limited to 2 GB" in answer


def test_cancel(client: Any, gallery: Gallery, demo: Any, csrf: str) -> None:
    form = {"csrf": csrf, "camera": "yard"}
    job = client.post("/jobs/add", files=files(demo, 2), data=form, headers=JSON).json()
    told = client.post(f"/jobs/{job['key']}/cancel", data={"csrf": csrf}, headers=JSON).json()
    assert told["state"] == "cancelled"
    work(client)
    assert len(gallery) == 90


def test_an_upload_is_kept_as_a_sighting(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    contents = [demo.sightings.files()[n].read_bytes() for n in (7, 8)]
    named = zip(("../seven.png", "pasted"), contents, strict=True)
    sent = [("image", one) for one in named]
    keys = client.post("/upload", files=sent, data={"csrf": csrf}, headers=JSON).json()["uploads"]
    page = client.get("/search", params={"upload": keys}).text
    assert page.count('<li><img src="/upload/') == 2
    assert "Keep as a sighting" in page
    form = {"upload": keys, "camera": "yard", "time": "2024-05-31T14:00", "csrf": csrf}
    kept = client.post("/keep", data=form, headers=JSON)
    assert kept.status_code == 200, kept.text
    ids = kept.json()["sightings"]
    assert [gallery.image(key) for key in ids] == contents
    view = gallery.view
    assert {float(view.table.times[view.rows[key]]) for key in ids} == {1717164000.0}
    assert client.get("/search", params={"like": ids}).status_code == 200
    for field, value in (("time", "noon"), ("camera", " ")):
        wrong = client.post("/keep", data={**form, field: value}, headers=JSON)
        assert (wrong.status_code, wrong.json()["field"]) == (422, field)


def test_several_images_are_one_query(client: Any, gallery: Gallery) -> None:
    """They rank as the mean of their squared distances does."""
    ids = gallery.view.table.ids[:2].tolist()
    expected = gallery.search_described(gallery.features(ids), 5, like=ids, together=True)[0]
    twin = client.get("/search.json", params={"like": ids, "k": 5}).json()
    assert [hit["id"] for hit in twin["hits"]] == [hit.id for hit in expected]
    assert [one["id"] for one in twin["asked"]] == ids
    many = client.get("/search.json", params={"like": gallery.view.table.ids[:17].tolist()})
    assert (many.status_code, "at most 16" in many.json()["error"]) == (422, True)
