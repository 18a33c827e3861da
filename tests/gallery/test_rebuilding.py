"""Replacing a model is a job: it goes on, gives way, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.forgetting import forget
from resight.gallery.rebuilding import unfinished


class Stopped(Exception):  # noqa: N818
    """Raised in the middle of a rebuild, as Ctrl-C would be."""


def stop_after(batches: int) -> Callable[[float], None]:
    left = iter(range(batches - 1))

    def step(share: float) -> None:
        if next(left, None) is None:
            raise Stopped

    return step


def stopped(gallery: Gallery, model: Any, batches: int = 2, **options: Any) -> None:
    with pytest.raises(Stopped):
        gallery.rebuild(model, batch_size=5, on_step=stop_after(batches), **options)


@pytest.fixture
def counted(tmp_path: Path) -> Callable[..., Any]:
    from toymodel import CountedModel

    return lambda **options: CountedModel(str(tmp_path / "log"), **options)


def test_it_embeds_only_what_is_missing(gallery: Gallery, counted: Callable[..., Any]) -> None:
    new = counted(seed=1, width=5)
    stopped(gallery, new, batches=3)
    assert gallery.info()["model_pending"] == new.fingerprint
    before = new.count("e")
    shares: list[float] = []
    gallery.rebuild(new, batch_size=5, on_step=shares.append)
    assert shares == pytest.approx([20 / 36, 25 / 36, 30 / 36, 35 / 36, 1.0])
    assert new.count("e") - before == 36 - 15 + 1  # one row to learn the width
    assert check(gallery.uri).notes == []


def test_what_was_added_and_removed_meanwhile(
    gallery: Gallery, people: Sightings, model: Callable[..., Any]
) -> None:
    other = Gallery.open(gallery.uri)
    gone = other.view.table.ids[[0, 1, 35]].tolist()
    late = replace(people.select([0, 1]), times=np.array([7.0, 8.0]))
    actions = iter([lambda: other.remove(gone), lambda: other.add(late)])
    gallery.rebuild(
        model(seed=2, width=6), batch_size=5, on_step=lambda share: next(actions, int)()
    )
    assert len(gallery) == 35
    assert gallery.engine.embedded(2) >= set(gallery.view.table.ids.tolist())
    assert check(gallery.uri).clean


def test_another_model_takes_the_place_of_an_unfinished_one(
    gallery: Gallery, model: Callable[..., Any]
) -> None:
    stopped(gallery, model(seed=1, width=5))
    gallery.rebuild(model(seed=2, width=5))
    assert gallery.model.fingerprint == "stripe-model-2-5"
    assert unfinished(gallery.engine) == []
    assert gallery.info()["model_pending"] is None
    gallery.rebuild(model(seed=1, width=5))  # from the beginning
    expected = gallery.model.embed(gallery.features(gallery.view.table.ids.tolist()).features)
    assert np.allclose(gallery.view.index.embeddings, expected, atol=1e-5)


def test_whoever_began_last_wins(gallery: Gallery, model: Callable[..., Any]) -> None:
    other = Gallery.open(gallery.uri)

    def meanwhile(share: float) -> None:
        stopped(other, model(seed=2, width=5), batches=1)

    with pytest.raises(StoreError, match="another process is switching"):
        gallery.rebuild(model(seed=1, width=5), on_step=meanwhile)
    assert gallery.model.fingerprint == "stripe-model-0-8"
    other.rebuild(model(seed=2, width=5))
    assert gallery.model.fingerprint == "stripe-model-2-5"
    assert check(gallery.uri).notes == []


def test_two_processes_with_the_same_model_share_the_work(
    gallery: Gallery, model: Callable[..., Any]
) -> None:
    other = Gallery.open(gallery.uri)
    shares = iter([0])

    def meanwhile(share: float) -> None:
        if next(shares, None) is not None:
            other.rebuild(model(seed=1, width=5))

    gallery.rebuild(model(seed=1, width=5), batch_size=5, on_step=meanwhile)
    assert [g.number for g in gallery.view.manifest.history] == [1, 2]
    assert check(gallery.uri).notes == []


def test_searches_do_not_read_the_gallery_again_meanwhile(
    gallery: Gallery, model: Callable[..., Any]
) -> None:
    other = Gallery.open(gallery.uri)
    views: set[int] = set()
    gallery.rebuild(
        model(seed=1, width=5), batch_size=5, on_step=lambda share: views.add(id(other.view))
    )
    assert len(views) == 1


def test_forgetting_somebody_drops_an_unfinished_model_taught_with_them(
    gallery: Gallery, model: Callable[..., Any]
) -> None:
    view = gallery.view
    taught = view.table.ids[view.persons == "0003"].tolist()
    stopped(gallery, model(seed=1, width=5), origin="refit", trained_on=taught)
    forget(gallery, "0003")
    assert unfinished(gallery.engine) == []
    gallery.rebuild(model(seed=1, width=5), origin="refit", trained_on=taught)
    assert check(gallery.uri).clean
