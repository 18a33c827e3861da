from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.evaluation import RankingResult, cmc
from resight.evaluation.pairwise import EmbeddedPoints
from resight.evaluation.supervised_reranking import adapt_locally, smoothed_manifold
from resight.experiments.in_gram_space import SplitRunner, measure
from resight.experiments.results import Result, Run, document, ranking_rows
from resight.experiments.tables import results_table
from resight.learners._base import squared_euclidean
from resight.models.model import Model
from resight.plans import FROM_TRAINING, RERANKERS, Plan
from resight.protocols import Protocol, Split, half_half
from resight.tuning.candidates import CV
from resight.tuning.gram import GramSpace


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    n = 32
    codes = np.tile(np.arange(n), 2)
    cameras = np.repeat(["A", "B"], n)
    sightings = Sightings(
        paths=[f"{camera}/{code}.png" for camera, code in zip(cameras, codes, strict=True)],
        persons=codes.astype(str),
        cameras=cameras,
        name="vectors",
    )
    X = rng.normal(size=(n, 40))[codes] + 0.8 * rng.normal(size=(2 * n, 40))
    return sightings, X, half_half(sightings, n_splits=3)


def nearest(trial):
    """Distances of the first match of each query."""
    return np.array([float(row["top_distances"].split()[0]) for row in trial["rankings"]])


def test_a_trial_equals_ranking_by_hand(data):
    sightings, X, protocol = data
    trials = measure(sightings, protocol, GramSpace([X], precision="float64"), [Plan("euclidean")])[
        0
    ]
    split = protocol.splits[1]
    rows = X - X[split.train].mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = []
    for query, gallery in split.directions:
        D = ((rows[query][:, None] - rows[gallery][None]) ** 2).sum(axis=-1)
        found.append(cmc(D, sightings.persons[query], sightings.persons[gallery])[0])
    assert trials[1]["ranks"]["rank1"] == pytest.approx(np.mean(found))


@pytest.mark.parametrize(
    ("learner", "params"), [("xqda", {"solver": "svd"}), ("kissme", {"psd": False})]
)
def test_metrics_without_an_embedding_are_measured_by_their_distances(data, learner, params):
    sightings, X, protocol = data
    plan = Plan(learner, params=params)
    trial = measure(sightings, protocol, GramSpace([X], precision="float64"), [plan])[0][0]
    split = protocol.splits[0]
    rows = X - X[split.train].mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fitted = plan.spec.make(**params)
    fitted.fit(rows[split.train], sightings.persons[split.train], sightings.cameras[split.train])
    found = []
    for query, gallery in split.directions:
        D = fitted.distances(rows[query], rows[gallery])
        found.append(cmc(D, sightings.persons[query], sightings.persons[gallery])[0])
    assert trial["ranks"]["rank1"] == pytest.approx(np.mean(found))


def test_processes_do_not_change_results(data):
    sightings, X, protocol = data
    space = GramSpace([X])
    plans = [Plan("kxqda"), Plan("kxqda", "cv", {}, CV[:3])]
    alone = measure(sightings, protocol, space, plans, n_jobs=1)
    together = measure(sightings, protocol, space, plans, n_jobs=2)
    for a, b in zip(alone, together, strict=True):
        assert [trial["map"] for trial in a] == pytest.approx([trial["map"] for trial in b])
        assert [trial["params"] for trial in a] == [trial["params"] for trial in b]


def test_reranked_rows_keep_the_plain_ones(data):
    sightings, X, protocol = data
    plans = [Plan("kxqda"), *(Plan("kxqda", rerank=method) for method in RERANKERS)]
    plain, *others = measure(sightings, protocol, GramSpace([X]), plans)
    assert len(others) == 4
    for trials in others:
        assert len(trials) == len(plain)
        assert all(0.0 <= trial["ranks"]["rank1"] <= 1.0 for trial in trials)
        assert nearest(trials[0])[0] != pytest.approx(nearest(plain[0])[0])


@pytest.mark.parametrize("learner", ["kxqda", "euclidean"])
def test_reranking_with_training_sightings_is_that_of_the_fitted_learner(data, learner):
    sightings, X, protocol = data
    split = protocol.splits[0]
    plans = [Plan(learner, rerank=method) for method in FROM_TRAINING]
    space = GramSpace([X], precision="float64")
    (smooth,), (local,) = measure(sightings, replace(protocol, splits=(split,)), space, plans)
    model = Model((), Plan(learner).spec.make(), normalize=True)
    model.fit(X[split.train], sightings.persons[split.train], sightings.cameras[split.train])
    query, gallery = split.directions[0]
    Q, G, T = (model.embed(X[rows]) for rows in (query, gallery, split.train))
    D = squared_euclidean
    asked, known = D(Q, np.concatenate([G, T])), EmbeddedPoints(G, T)
    expected = adapt_locally(asked, known)
    found = RankingResult.from_distances(
        expected, sightings.persons[query], sightings.persons[gallery]
    )
    np.testing.assert_allclose(nearest(local), found.top_distances[:, 0], rtol=1e-3)
    expected = smoothed_manifold(asked, known, sightings.persons[split.train])
    assert smooth["ranks"]["rank1"] == pytest.approx(
        RankingResult.from_distances(
            expected, sightings.persons[query], sightings.persons[gallery]
        ).rank(1),
        abs=0.03,
    )


def test_warnings_of_learners_are_counted(data):
    sightings, X, protocol = data
    hopeless = Plan("kxqda", params={"reg": 1e3})
    trials = measure(sightings, protocol, GramSpace([X]), [hopeless])[0]
    result = document(sightings, protocol, [Run(hopeless, ("vectors",), trials)], {})
    assert result["runs"][0]["warnings"][0].startswith("in 3 of 3 splits: no direction separates")


def test_documents_hold_percentages_and_survive_json(data, tmp_path):
    sightings, X, protocol = data
    plan = Plan("kxqda", "cv", {}, CV[:2])
    trials = measure(sightings, protocol, GramSpace([X]), [plan])[0]
    runs = [Run(plan, ("vectors",), trials)]
    result = document(sightings, protocol, runs, {"fingerprint": {}})
    Result(result, ranking_rows(runs)).save(tmp_path)
    again = json.loads((tmp_path / "result.json").read_text())
    assert again["schema"] == "resight.result/1"
    summary = again["runs"][0]["summary"]["rank1"]
    rank1 = [trial["ranks"]["rank1"] for trial in trials]
    assert summary["mean"] == pytest.approx(100 * np.mean(rank1))
    assert len(again["runs"][0]["trials"][0]["candidates"]) == 2
    lines = (tmp_path / "rankings.csv").read_text().splitlines()
    assert len(lines) == 1 + sum(len(split.query) for split in protocol.splits)
    assert "k-XQDA (cv), vectors" in results_table(result)


def test_trials_survive_json_even_where_lists_are_short(data):
    sightings, X, protocol = data
    split = protocol.splits[0]
    few = Protocol("few", (Split(split.train, split.query[:3], split.gallery[:3]),))
    trial = SplitRunner(sightings, few, GramSpace([X]), few.splits[0]).measure([Plan("kxqda")])[0]
    told = trial.to_dict(sightings)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert np.isnan(trial.rankings[0].result.top_distances[:, 3:]).all()
    for row, query in zip(told["rankings"], few.splits[0].query, strict=True):
        assert row["query"] == sightings.paths[query]
        assert len(row["top_paths"].split("|")) == len(row["top_distances"].split()) == 3
