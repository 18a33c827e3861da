"""Splits measured from features equal those measured in Gram space."""

from __future__ import annotations

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments import out_of_core
from resight.experiments.in_gram_space import measure
from resight.experiments.out_of_core import exceeds_gram_space
from resight.experiments.trials import ranked
from resight.features.rows import FeatureRows
from resight.learners.kxqda import KXQDA
from resight.models import training as choosing
from resight.plans import Plan
from resight.protocols import Protocol, Split, half_half
from resight.tuning.candidates import CV
from resight.tuning.gram import GramSpace

BLOCKS = (25, 15)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(12)
    n = 32
    codes, cameras = np.tile(np.arange(n), 4), np.repeat(["A", "B", "C", "A"], n)
    sightings = Sightings(
        paths=[f"{i}.png" for i in range(4 * n)],
        persons=codes.astype(str),
        cameras=cameras,
        name="vectors",
    )
    X = rng.normal(size=(n, 40))[codes] + 0.8 * rng.normal(size=(4 * n, 40))
    return sightings, X, FeatureRows([X], BLOCKS)


def measured(data, plans, protocol=None):
    sightings, _, source = data
    chosen = protocol or half_half(sightings, n_splits=2)
    return [out_of_core.measure(sightings, chosen, source, plan, fingerprint="x") for plan in plans]


@pytest.mark.parametrize("learner", ["euclidean", "kxqda", "xqda", "xqda-raw"])
def test_it_equals_gram_space(data, learner):
    sightings, X, _ = data
    protocol = half_half(sightings, n_splits=2)
    plan = Plan(learner)
    expected = measure(sightings, protocol, GramSpace([X], [BLOCKS], "float64"), [plan])[0]
    found = measured(data, [plan], protocol)[0]
    assert [trial["map"] for trial in found] == pytest.approx(
        [trial["map"] for trial in expected], abs=2e-3
    )


def test_chi_square_kernels_are_measured_on_raw_descriptors(data):
    sightings, X, _ = data
    histograms = np.abs(X)
    source = FeatureRows([histograms], BLOCKS)
    plan = Plan("kxqda", params={"kernel": "chi2-rbf", "reg": 1e-2, "reg_form": "relative"})
    assert exceeds_gram_space(plan, source)
    protocol = half_half(sightings, n_splits=1)
    (trial,) = out_of_core.measure(sightings, protocol, source, plan, fingerprint="x")
    split = protocol.splits[0]
    learner = KXQDA(**plan.params, precision="float32")
    learner.fit(
        histograms[split.train], sightings.persons[split.train], sightings.cameras[split.train]
    )
    query, gallery = split.directions[0]
    D = learner.distances(histograms[query], histograms[gallery])
    expected = ranked(sightings, protocol, query, gallery, D).result
    assert trial["ranks"]["rank1"] == pytest.approx(expected.rank(1))


def test_junk_and_the_own_camera_are_ignored_as_in_gram_space(data):
    sightings, X, source = data
    people = sightings.persons.astype(int)
    train, test = np.flatnonzero(people < 16), np.flatnonzero(people >= 16)
    query = test[sightings.cameras[test] == "A"]
    roles = np.full(len(sightings), "", dtype="<U10")
    roles[test[::9]] = "junk"
    marked = Sightings(
        sightings.paths, sightings.persons, sightings.cameras, roles=roles, name="roles"
    )
    query = query[roles[query] != "junk"]
    protocol = Protocol("market", (Split(train, query, test),), cross_camera_only=True)
    plans = [Plan("kxqda"), Plan("kxqda", rerank="cross-view")]
    expected = measure(marked, protocol, GramSpace([X], [BLOCKS], "float64"), plans)
    found = measured((marked, X, source), plans, protocol)
    for mine, other in zip(found, expected, strict=True):
        assert mine[0]["map"] == pytest.approx(other[0]["map"], abs=2e-3)
        rank1, expected_rank1 = (one[0]["ranks"]["rank1"] for one in (mine, other))
        assert rank1 == pytest.approx(expected_rank1, abs=0.05)


def test_landmarks_choose_their_regulariser(data):
    plain, chosen = measured(
        data,
        [
            Plan("kxqda", params={"landmarks": 40, "reg": 1e-2, "reg_form": "relative"}),
            Plan("kxqda", "cv", {"landmarks": 40}, CV),
        ],
    )
    assert plain[0]["choice"] is None
    assert len(chosen[0]["choice"]) == 6
    assert {"landmarks", "reg", "reg_form"} <= chosen[0]["params"].keys()
    assert min(trial["ranks"]["rank1"] for trial in (*plain, *chosen)) > 0.3


def test_a_large_exact_model_chooses_on_some_people_and_says_so(data, monkeypatch):
    monkeypatch.setattr(choosing, "_CHOICE_ROWS", 40)
    trial = measured(data, [Plan("kxqda", "cv", {}, CV[:3])])[0][0]
    assert len(trial["choice"]) == 3
    assert "chosen on 10 of the training people" in trial["warnings"][0]


def test_when_it_is_needed(data, monkeypatch):
    source = data[2]
    assert not exceeds_gram_space(Plan("kxqda"), source)
    assert exceeds_gram_space(Plan("kxqda", params={"landmarks": 5}), source)
    monkeypatch.setattr(out_of_core, "GRAM_LIMIT", source.gram_bytes - 1)
    assert exceeds_gram_space(Plan("kxqda"), source)


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (Plan("auto"), "auto compares many settings"),
        (Plan("kxqda", rerank="k-reciprocal"), "leave it out, or use cross-view"),
    ],
)
def test_what_is_refused(data, plan, text):
    with pytest.raises(InputError, match=text):
        out_of_core.check(plan, data[2])
