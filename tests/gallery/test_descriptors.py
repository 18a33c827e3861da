"""Descriptors stored whole, in half, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.gallery import Described, Gallery
from resight.gallery.checking import check
from resight.gallery.copying import backup, restore


@pytest.mark.parametrize(("kind", "size"), [("float32", 192), ("float16", 96), ("none", 0)])
def test_how_descriptors_are_stored(
    uri: str, people: Sightings, model: Callable[..., Any], kind: Any, size: int
) -> None:
    gallery = Gallery.create(uri, model(), descriptors=kind)
    gallery.add(people)
    sizes = gallery.info()["bytes_per_sighting"]
    images = [len(file.read_bytes()) for file in people.files()]
    assert sizes["image"] == pytest.approx(np.mean(images), rel=0.01)
    assert sizes["descriptor"] == pytest.approx(size, abs=4 * bool(size))
    assert sizes["embedding"] == pytest.approx(32, abs=8)
    ids = gallery.view.table.ids.tolist()
    features = gallery.features(ids)
    assert features.features.shape == (36, 48)
    expected = gallery.describe(
        [np.asarray(gallery_image(gallery, sighting)) for sighting in ids]
    ).features
    assert np.allclose(features.features, expected, atol=1e-3 if kind == "float16" else 0)
    hits = gallery.search(people.files()[3], k=36)
    gallery.rebuild(model(seed=1, width=5))
    gallery.undo_rebuild()
    assert gallery.search(people.files()[3], k=36) == hits
    assert [h.id for h in gallery.search_like(ids[0], 5, None)]
    report = check(uri)
    assert (report.clean, report.notes) == (True, [])
    gallery.close()


def gallery_image(gallery: Gallery, sighting: str) -> np.ndarray:
    from resight.images import read as decode

    return decode(gallery.image(sighting))


def test_without_descriptors_another_descriptor_is_computed_from_the_images(
    uri: str, people: Sightings, model: Callable[..., Any], tmp_path: Any
) -> None:
    from toymodel import HalfStripeModel

    gallery = Gallery.create(uri, model(), descriptors="none")
    gallery.add(people)
    before = gallery.search(people.files()[0], k=36)
    other = Gallery.open(uri)
    gallery.rebuild(HalfStripeModel())
    assert gallery.info()["descriptor"] == "half-stripes-1"
    pictures = [gallery_image(gallery, str(key)) for key in gallery.view.table.ids]
    fresh = HalfStripeModel()
    expected = fresh.embed(fresh.describe(pictures))
    assert np.allclose(gallery.view.index.embeddings, expected, atol=1e-5)
    assert other.search(people.files()[0], k=36) == gallery.search(people.files()[0], k=36)
    gallery.add(people)
    backup(uri, tmp_path / "b")
    restore(tmp_path / "b", tmp_path / "copy")
    for each in (gallery, Gallery.open(tmp_path / "copy")):
        each.undo_rebuild()
        assert each.search(people.files()[0], k=36) == before
    assert check(uri).clean
    stored = Gallery.create(tmp_path / "stored", model())
    with pytest.raises(InputError, match="uses descriptors half-stripes-1"):
        stored.rebuild(HalfStripeModel())
    gallery.close()


def test_values_too_large_for_float16_are_refused(
    uri: str, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(uri, model())
    vectors = np.full((len(people), 48), 1e6, np.float32)
    described = Described(vectors, model().descriptor_fingerprint)
    with pytest.raises(InputError, match=r"reach 1e\+06, too much for float16.*'float32'"):
        gallery.add(people, described=described)
    assert len(gallery) == 0
    gallery.close()
