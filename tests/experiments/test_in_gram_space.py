from __future__ import annotations

import json

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.evaluation import RankingResult, cmc
from resight.evaluation.local_metrics import adapt_locally
from resight.evaluation.pairwise import EmbeddedPoints
from resight.evaluation.smoothed_manifold import smoothed_manifold
from resight.experiments.in_gram_space import measure, measure_split
from resight.experiments.results import Result, Run, document, ranking_rows
from resight.experiments.tables import results_table
from resight.experiments.trials import Trial
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
    assert trials[1].rank(1) == pytest.approx(np.mean(found))


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
    assert trial.rank(1) == pytest.approx(np.mean(found))


def test_processes_do_not_change_results(data):
    sightings, X, protocol = data
    space = GramSpace([X])
    plans = [Plan("kxqda"), Plan("kxqda", "cv", {}, CV[:3])]
    alone = measure(sightings, protocol, space, plans, n_jobs=1)
    together = measure(sightings, protocol, space, plans, n_jobs=2)
    for a, b in zip(alone, together, strict=True):
        assert [trial.map for trial in a] == pytest.approx([trial.map for trial in b])
        assert [trial.params for trial in a] == [trial.params for trial in b]


def test_reranked_rows_keep_the_plain_ones(data):
    sightings, X, protocol = data
    plans = [Plan("kxqda"), *(Plan("kxqda", rerank=method) for method in RERANKERS)]
    plain, *others = measure(sightings, protocol, GramSpace([X]), plans)
    assert len(others) == 4
    for trials in others:
        assert len(trials) == len(plain)
        assert all(0.0 <= trial.rank(1) <= 1.0 for trial in trials)
        assert trials[0].rankings[0].result.top_distances[0, 0] != pytest.approx(
            plain[0].rankings[0].result.top_distances[0, 0]
        )


@pytest.mark.parametrize("learner", ["kxqda", "euclidean"])
def test_reranking_with_training_sightings_is_that_of_the_fitted_learner(data, learner):
    sightings, X, protocol = data
    split = protocol.splits[0]
    plans = [Plan(learner, rerank=method) for method in FROM_TRAINING]
    smooth, local = (
        trials[0].rankings[0].result
        for trials in measure(sightings, protocol, GramSpace([X], precision="float64"), plans)
    )
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
    np.testing.assert_allclose(local.top_distances[:, 0], found.top_distances[:, 0], rtol=1e-3)
    expected = smoothed_manifold(asked, known, sightings.persons[split.train])
    assert smooth.rank(1) == pytest.approx(
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
    Result(result, ranking_rows(sightings, runs)).save(tmp_path)
    again = json.loads((tmp_path / "result.json").read_text())
    assert again["schema"] == "resight.result/1"
    summary = again["runs"][0]["summary"]["rank1"]
    assert summary["mean"] == pytest.approx(100 * np.mean([trial.rank(1) for trial in trials]))
    assert len(again["runs"][0]["trials"][0]["candidates"]) == 2
    lines = (tmp_path / "rankings.csv").read_text().splitlines()
    n_queries = sum(len(r.query_rows) for trial in trials for r in trial.rankings)
    assert len(lines) == 1 + n_queries
    assert "k-XQDA (cv), vectors" in results_table(result)


def test_trials_survive_json_even_where_lists_are_short(data):
    sightings, X, protocol = data
    split = protocol.splits[0]
    few = Protocol("few", (Split(split.train, split.query[:3], split.gallery[:3]),))
    trial = measure_split(sightings, few, GramSpace([X]), few.splits[0], [Plan("kxqda")])[0]
    again = Trial.from_dict(json.loads(json.dumps(trial.to_dict(), allow_nan=False)))
    assert again.to_dict() == trial.to_dict()
    assert again.rankings[0].result.to_rows() == trial.rankings[0].result.to_rows()
    assert np.isnan(trial.rankings[0].result.top_distances[:, 3:]).all()
    np.testing.assert_array_equal(
        again.rankings[0].result.top_distances, trial.rankings[0].result.top_distances
    )
