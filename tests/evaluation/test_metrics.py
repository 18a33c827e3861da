"""CMC, mAP and mINP against their definitions, written as plainly as possible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError
from resight.evaluation import (
    RankingResult,
    average_precisions,
    cmc,
    mean_average_precision,
    mean_inverse_negative_penalty,
)


def first_ranks(*ranked, **options):
    return RankingResult.from_distances(*ranked, **options).first_ranks


def hit_ranks_by_definition(i, D, query_persons, gallery_persons, query_cameras, cameras, junk):
    """Ranks of the right answers of query i, counted one pair at a time."""
    wrong, right = [], []
    for j, person in enumerate(gallery_persons):
        same_camera = cameras is not None and query_cameras[i] == cameras[j]
        if junk[j] or (person == query_persons[i] and same_camera):
            continue
        (right if person == query_persons[i] else wrong).append(D[i][j])
    return [
        position + sum(w <= distance for w in wrong)
        for position, distance in enumerate(sorted(right), start=1)
    ]


@st.composite
def problems(draw):
    """Small rankings full of ties, with distractors, junk and cameras; every query has an answer.

    The last gallery sightings are one of each query's person by the other camera, not junk.
    """

    def some(n, top):
        return np.array(draw(st.lists(st.integers(0, top), min_size=n, max_size=n)), int)

    n_q, n_g = draw(st.integers(1, 5)), draw(st.integers(0, 8))
    D = some(n_q * (n_g + n_q), draw(st.integers(1, 5))).reshape(n_q, n_g + n_q) / 2.0
    query_persons, query_cameras = some(n_q, 2), some(n_q, 1)
    gallery_persons = np.append(some(n_g, 4), query_persons)  # people 3 and 4 are distractors
    gallery_cameras = np.append(some(n_g, 1), 1 - query_cameras)
    junk = np.append(some(n_g, 3) == 0, np.zeros(n_q, bool))
    cameras = (query_cameras, gallery_cameras) if draw(st.booleans()) else (None, None)
    return D, query_persons, gallery_persons, *cameras, junk


@given(problems())
def test_all_measures_equal_their_definition(problem):
    D, qp, gp, qc, gc, junk = problem
    ranks = [hit_ranks_by_definition(i, D, qp, gp, qc, gc, junk) for i in range(len(qp))]
    options = {"query_cameras": qc, "gallery_cameras": gc, "junk": junk}
    first = [r[0] for r in ranks]
    ap = [np.mean([(k + 1) / rank for k, rank in enumerate(r)]) for r in ranks]
    inp = [len(r) / r[-1] for r in ranks]
    assert first_ranks(D, qp, gp, **options).tolist() == first
    assert average_precisions(D, qp, gp, **options) == pytest.approx(ap)
    ranked = RankingResult.from_distances(D, qp, gp, **options)
    assert ranked.inverse_negative_penalties == pytest.approx(inp)
    assert mean_average_precision(D, qp, gp, **options) == pytest.approx(np.mean(ap))
    assert mean_inverse_negative_penalty(D, qp, gp, **options) == pytest.approx(np.mean(inp))
    curve = cmc(D, qp, gp, **options)
    assert curve == pytest.approx([np.mean(np.array(first) <= k + 1) for k in range(len(curve))])
    assert curve[-1] == 1.0


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_gallery_does_not_matter(problem, random):
    D, qp, gp, qc, gc, junk = problem
    order = list(range(len(gp)))
    random.shuffle(order)
    options = {"query_cameras": qc, "gallery_cameras": gc, "junk": junk}
    moved = {
        "query_cameras": qc,
        "gallery_cameras": None if gc is None else gc[order],
        "junk": junk[order],
    }
    expected = average_precisions(D, qp, gp, **options)
    assert average_precisions(D[:, order], qp, gp[order], **moved) == pytest.approx(expected)


@given(problems())
def test_junk_equals_leaving_the_sightings_out(problem):
    D, qp, gp, _, _, junk = problem
    assert cmc(D, qp, gp, junk=junk) == pytest.approx(cmc(D[:, ~junk], qp, gp[~junk]))


def test_equal_distances_are_the_worst_case_not_luck():
    people = np.arange(10)
    assert first_ranks(np.zeros((10, 10)), people, people).tolist() == [10] * 10
    assert mean_average_precision(np.zeros((10, 10)), people, people) == pytest.approx(0.1)


def test_distractors_push_ranks_back():
    alone = cmc([[2.0]], ["a"], ["a"])
    crowded = cmc([[2.0, 1.0, 3.0]], ["a"], ["a", "", ""])  # unknown people in the gallery
    assert alone.tolist() == [1.0]
    assert crowded.tolist() == [0.0, 1.0, 1.0]


def test_market_rule_ignores_the_own_camera_but_not_other_people_in_it():
    gallery, cameras = ["a", "b", "a"], ["1", "1", "2"]
    ranks = first_ranks(
        [[0.0, 1.0, 2.0]], ["a"], gallery, query_cameras=["1"], gallery_cameras=cameras
    )
    assert ranks.tolist() == [2]


def test_large_galleries_are_ranked_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    D, people = rng.random((37, 53)), np.arange(53)
    whole = first_ranks(D, people[:37], people)
    monkeypatch.setattr("resight.evaluation.ranking._BLOCK_ELEMENTS", 200)
    assert first_ranks(D, people[:37], people).tolist() == whole.tolist()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[1.0]], ["a", "b"], ["a"]), {}, r"must be \(2, 1\)"),
        (([[np.nan]], ["a"], ["a"]), {}, "finite"),
        (([[1.0]], ["a"], ["b"]), {}, "no match in the gallery: a;"),
        (([[1.0]], [""], [""]), {}, "have no person"),
        (([[1.0]], [1], ["1"]), {}, "same type of label"),
        (
            ([[1.0]], ["a"], ["a"]),
            {"query_cameras": ["1"]},
            "both queries and gallery, or for neither",
        ),
        (([[1.0]], ["a"], ["a"]), {"junk": [0]}, "True or False"),
        (([[1.0]], ["a"], ["a"]), {"junk": [True, False]}, "one per row"),
        (
            ([[1.0]], ["a"], ["a"]),
            {"query_cameras": ["1"], "gallery_cameras": ["1"]},
            "another camera",
        ),
        (
            ([[1.0]], ["a"], ["a"]),
            {"query_cameras": ["1", "2"], "gallery_cameras": ["1"]},
            "query cameras has shape",
        ),
        ((np.zeros((0, 1)), [], ["a"]), {}, "at least one query"),
    ],
)
def test_refusals_say_what_is_needed(arguments, options, message):
    with pytest.raises(InputError, match=message):
        cmc(*arguments, **options)
