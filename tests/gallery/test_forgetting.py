from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.forgetting import expire, forget, prove_gone


def needles(gallery: Gallery, ids: list[str]) -> list[bytes]:
    images = gallery.engine.fetch(ids, "image").values()
    return [content[len(content) // 2 :][:48] for content in images]


def test_forgetting_leaves_no_trace(gallery: Gallery, people: Sightings) -> None:
    view = gallery.view
    ids = view.table.ids[view.persons == "0003"].tolist()
    other = str(view.table.ids[view.persons == "0004"][0])
    unknown = view.table.ids[view.persons == ""].tolist()
    gallery.teach("same", ids[0], unknown[0])
    gallery.teach("different", other, unknown[1])
    gallery.engine.append("access", "k1", json.dumps({"query": ids[1]}))
    gallery.engine.append("access", "k2", json.dumps({"query": other}))
    erased = [*ids, unknown[0]]
    look_for = needles(gallery, erased)
    assert all(gallery.engine.traces([needle]) for needle in look_for)  # the search does find them
    with pytest.raises(StoreError, match="traces are left"):
        prove_gone(gallery, erased, look_for)

    result = forget(gallery, "0003")
    assert (result.sightings, result.labels, result.searches) == (4, 1, 1)
    assert gallery.engine.traces(look_for) == []
    assert "0003" not in gallery.view.persons
    assert len(gallery) == 32
    assert [key for key, _ in gallery.engine.read("access")] == ["k2"]
    assert len(gallery.view.labels.active) == 1
    assert check(gallery.uri).clean
    with pytest.raises(InputError, match="unknown person '0003'"):
        forget(gallery, "0003")


def test_models_taught_with_a_person_are_dropped(
    gallery: Gallery, model: Callable[..., Any], people: Sightings
) -> None:
    view = gallery.view
    ids = view.table.ids[view.persons == "0002"].tolist()
    gallery.rebuild(model(seed=1), origin="refit", trained_on=ids)
    gallery.rebuild(model(seed=2), origin="rebuild")
    gallery.rebuild(model(seed=3), origin="refit", trained_on=ids)
    result = forget(gallery, "0002")
    assert result.models_replaced == 1
    assert gallery.model.fingerprint == "stripe-model-2-8"
    assert len(gallery.search(people.files()[0], k=99)) == 33


def test_retention(uri: str, people: Sightings, model: Callable[..., Any]) -> None:
    from dataclasses import replace

    gallery = Gallery.create(uri, model(), retention_days=30)
    day = 86_400.0
    times = 1.7e9 + np.where(np.arange(36) < 10, 0.0, 20 * day)
    times[20:] = np.nan  # as old as their stay in the gallery
    gallery.add(replace(people, times=times))
    assert expire(gallery, now=1.7e9 + 40 * day) == 10
    assert len(gallery) == 26
    assert expire(gallery, now=1.7e9 + 40 * day) == 0
    gallery.retain(None)
    assert expire(gallery, now=1e12) == 0
    with pytest.raises(InputError, match="above 0"):
        gallery.retain(-1)


def test_erased_bytes_leave_the_folder(
    tmp_path: Path, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(tmp_path / "gallery", model())
    gallery.add(people)
    content = people.files()[0].read_bytes()

    def files() -> bytes:
        found = (tmp_path / "gallery").rglob("*")
        return b"".join(file.read_bytes() for file in found if file.is_file())

    assert content in files()
    forget(gallery, str(people.persons[0]))
    assert content[200:300] not in files()
