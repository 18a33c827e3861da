"""Re-ranked searches are the definitions of re-ranking on what the conditions leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.evaluation.pairwise import EmbeddedPoints
from resight.evaluation.reranking import cross_view_reciprocal, k_reciprocal
from resight.evaluation.supervised_reranking import adapt_locally
from resight.gallery import Filter, Gallery, reranking, searching
from resight.learners._base import squared_euclidean

WHERE = Filter(exclude_cameras=("camera-1",))


def asked(gallery: Gallery) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query embeddings of camera 1, gallery embeddings of the others, and the latter's ids."""
    view = gallery.view
    rows = np.flatnonzero(view.table.cameras != "camera-1")
    ids = [str(i) for i in view.table.ids[view.table.cameras == "camera-1"]]
    Q = gallery.model.embed(gallery.features(ids).features).astype(np.float32)
    return Q, view.index.embeddings[rows], view.table.ids[rows]


def queries(gallery: Gallery) -> Any:
    return gallery.features(
        gallery.view.table.ids[gallery.view.table.cameras == "camera-1"].tolist()
    )


def test_k_reciprocal_is_the_definition_for_each_query(gallery: Gallery) -> None:
    Q, G, ids = asked(gallery)
    found = gallery.search_described(queries(gallery), 24, WHERE, rerank="k-reciprocal")
    changed = 0
    for query, hits in zip(Q, found, strict=True):
        plain = np.argsort(((G - query) ** 2).sum(axis=1), kind="stable")
        order = plain[
            np.argsort(k_reciprocal(EmbeddedPoints(query[None], G[plain]))[0], kind="stable")
        ]
        assert [hit.id for hit in hits] == ids[order].tolist()
        assert [hit.rank for hit in hits] == list(range(1, 25))
        before = {str(sighting): rank for rank, sighting in enumerate(ids[plain], 1)}
        assert [hit.rank_before for hit in hits] == [before[hit.id] for hit in hits]
        changed += [hit.rank_before for hit in hits] != [hit.rank for hit in hits]
    assert changed  # it is another order


@pytest.mark.parametrize("method", ["k-reciprocal", "ol-mans"])
def test_an_answer_does_not_depend_on_the_other_queries(
    gallery: Gallery, people: Sightings, method: Any
) -> None:
    files = [people.files()[row] for row in (0, 7)]
    both = gallery.search_many(files, 9, rerank=method)
    assert both == [gallery.search(file, 9, rerank=method) for file in files]
    assert gallery.search_many([], 9) == []


def test_cross_view_is_the_definition_over_all_queries(gallery: Gallery) -> None:
    Q, G, ids = asked(gallery)
    D = squared_euclidean(Q.astype(float), G.astype(float))
    places = cross_view_reciprocal(D)
    found = gallery.search_described(queries(gallery), 24, WHERE, rerank="cross-view")
    for row, hits in enumerate(found):
        assert [hit.id for hit in hits] == ids[np.lexsort((D[row], places[row]))].tolist()
    assert any(hit.rank != hit.rank_before for hits in found for hit in hits)


def test_ol_mans_is_the_definition_with_labelled_people_as_negatives(gallery: Gallery) -> None:
    Q, G, ids = asked(gallery)
    view = gallery.view
    labelled = np.flatnonzero(view.persons != "")
    T, who = view.index.embeddings[labelled].astype(float), view.persons[labelled]
    found = gallery.search_described(queries(gallery), 24, WHERE, rerank="ol-mans")
    for query, hits in zip(Q.astype(float)[:, None], found, strict=True):
        others = who != who[squared_euclidean(query, T)[0].argmin()]
        N = T[others]
        plain = np.argsort(squared_euclidean(query, G.astype(float))[0], kind="stable")
        near = G[plain].astype(float)
        asked_for = squared_euclidean(query, np.concatenate([near, N]))
        D = adapt_locally(asked_for, EmbeddedPoints(near, N))
        assert [hit.id for hit in hits] == ids[plain[np.argsort(D[0], kind="stable")]].tolist()
    assert any(hit.rank != hit.rank_before for hits in found for hit in hits)


@pytest.mark.parametrize("method", reranking.METHODS)
def test_by_the_engine_the_order_is_the_same(gallery: Gallery, method: Any) -> None:
    large = Gallery.open(gallery.uri, memory_limit=0)
    for where in (WHERE, Filter(persons=("0002", "0003"))):
        exact = gallery.search_described(queries(gallery), 5, where, rerank=method)
        found = large.search_described(queries(gallery), 5, where, rerank=method)
        assert [[h.id for h in hits] for hits in found] == [[h.id for h in hits] for hits in exact]


@pytest.mark.parametrize("method", reranking.METHODS)
def test_what_follows_the_candidates_keeps_its_order(
    gallery: Gallery, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (reranking, searching):
        monkeypatch.setattr(module, "CANDIDATES", 6)
    for hits in gallery.search_described(queries(gallery), 20, WHERE, rerank=method):
        assert sorted(hit.rank_before for hit in hits[:6]) == [1, 2, 3, 4, 5, 6]
        assert [hit.rank_before for hit in hits[6:]] == list(range(7, 21))
    few = gallery.search_described(queries(gallery), 2, WHERE, rerank=method)
    assert all(len(hits) == 2 for hits in few)


def test_nothing_left_to_re_rank(gallery: Gallery) -> None:
    nobody = Filter(before=-1.0)
    for method in reranking.METHODS:
        found = gallery.search_described(queries(gallery), 5, nobody, rerank=method)
        assert found == [[] for _ in found]
    one = Filter(after=1000.0, before=1000.0)
    [hit] = gallery.search_described(queries(gallery), 5, one, rerank="k-reciprocal")[0]
    assert (hit.rank, hit.rank_before) == (1, 1)


def test_plain_searches_are_not_marked(gallery: Gallery, people: Sightings) -> None:
    assert all(hit.rank_before is None for hit in gallery.search(people.files()[0]))


def test_mistakes(gallery: Gallery, people: Sightings) -> None:
    with pytest.raises(InputError, match="did you mean 'k-reciprocal'"):
        gallery.search(people.files()[0], rerank="k-reciprocial")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="two or more images"):
        gallery.search(people.files()[0], rerank="cross-view")
