"""LanceDB by URI: over the S3 protocol, against a server that the test starts, and ``file://``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.forgetting import forget

_NAMES = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_SESSION_TOKEN")


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in _NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    return monkeypatch


@pytest.fixture
def objects(credentials: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """The objects of an empty S3 store."""
    import s3server

    server, address = s3server.start()
    credentials.setenv("AWS_ENDPOINT", address)
    yield s3server.Handler.objects
    server.shutdown()
    server.server_close()


def test_the_life_of_a_gallery_on_an_object_store(
    objects: dict[str, bytes], tmp_path: Path, people: Sightings, model: Callable[..., Any]
) -> None:
    uri = "s3://bucket/town/gallery"
    with pytest.raises(StoreError, match="no gallery at"):
        Gallery.open(uri)
    gallery, local = Gallery.create(uri, model()), Gallery.create(tmp_path / "local", model())
    assert gallery.add(people).failures == []
    local.add(people)
    file, conditions = people.files()[2], {"exclude_cameras": ["camera-2"], "after": 1010.0}
    assert gallery.search(file, 9, **conditions) == local.search(file, 9, **conditions)
    assert Gallery.open(uri).search(file, 36) == local.search(file, 36)

    gallery.rebuild(model(seed=1, width=5))
    local.rebuild(model(seed=1, width=5))
    assert gallery.search(file, 9) == local.search(file, 9)
    gallery.undo_rebuild()

    erased = gallery.view.table.ids[gallery.view.persons == "0003"].tolist()
    images = [gallery.image(sighting) for sighting in erased]
    assert forget(gallery, "0003").sightings == len(erased) == 3
    left = b"".join(objects.values())
    assert not any(image[100:200] in left for image in images)
    assert not any(sighting.encode() in left for sighting in erased)
    assert check(uri).clean
    assert len(Gallery.open(uri)) == 33
    assert {key.split("/")[0] for key in objects} == {"bucket"}


def test_two_writers_on_an_object_store(
    objects: dict[str, bytes], people: Sightings, model: Callable[..., Any]
) -> None:
    """A version is committed by a conditional write: the loser of a race tries again."""
    uri = "s3://bucket/both"
    Gallery.create(uri, model())
    errors: list[BaseException] = []

    def add(rows: np.ndarray) -> None:
        try:
            Gallery.open(uri).add(people.select(rows), batch_size=6)
        except BaseException as error:
            errors.append(error)

    halves = [np.arange(0, 24), np.arange(12, 36)]  # they overlap
    threads = [threading.Thread(target=add, args=(rows,)) for rows in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(Gallery.open(uri)) == 36
    assert check(uri).clean


def test_an_object_store_that_does_not_answer(credentials: pytest.MonkeyPatch) -> None:
    credentials.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(StoreError, match="the object store does not answer"):
        Gallery.open("s3://bucket/gallery")


def test_a_folder_by_uri(tmp_path: Path, people: Sightings, model: Callable[..., Any]) -> None:
    folder = tmp_path / "my gallery"
    Gallery.create(folder.as_uri(), model()).add(people)
    assert len(Gallery.open(folder)) == 36
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="is not a gallery"):
        Gallery.create((tmp_path / "mine").as_uri(), model())
