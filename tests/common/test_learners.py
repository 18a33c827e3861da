"""Every learner of the package x every check."""

from __future__ import annotations

import doctest
import re
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

import resight
from resight.errors import InputError
from resight.learners._base import MetricLearner
from resight.registry import LEARNERS
from resight.saving import SavableMixin

# Euclidean learns nothing, so it refuses nothing either.
NAMES = list(dict.fromkeys(s.class_name for s in LEARNERS.values() if s.name != "euclidean"))
# A setting is chosen from more people than these checks have; see tests/tuning/test_auto.py.
CHOSEN = {"kernel": "rbf", "width": 1.0, "reg_form": "kernel", "reg": 1e-2, "weights": [1.0]}
PARAMS: dict[str, dict[str, Any]] = {"AutoKXQDA": {"setting": CHOSEN}}


def made(name: str, **params: Any) -> MetricLearner:
    learner: MetricLearner = getattr(resight, name)(**(PARAMS.get(name, {}) | params))
    return learner


USES_CAMERAS = {
    name for name in NAMES if re.search("It uses `+cameras`", type(made(name)).__doc__ or "")
}

# It learns from cameras alone: whatever the persons, the result is the same.
UNSUPERVISED = {name for name in NAMES if not made(name).__sklearn_tags__().target_tags.required}

# What a learner says of toy data, on purpose, is tested with that learner.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the null space is empty"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@dataclass(frozen=True)
class Toy:
    """A few persons seen by two cameras, once to three times each."""

    X: NDArray[np.float64]
    persons: NDArray[Any]
    cameras: NDArray[Any]
    Q: NDArray[np.float64]
    G: NDArray[np.float64]


@pytest.fixture(scope="module")
def toy() -> Toy:
    rng = np.random.default_rng(7)
    looks = rng.uniform(size=(11, 44))
    lamps = rng.uniform(0.8, 1.2, size=(2, 44))
    counts = rng.integers(1, 4, size=(11, 2))
    who, where = np.indices(counts.shape)
    persons, cameras = np.repeat(who, counts.ravel()), np.repeat(where, counts.ravel())
    X = looks[persons] * lamps[cameras] + 0.1 * rng.uniform(size=(len(persons), 44))
    probe = looks * lamps[0] + 0.1 * rng.uniform(size=looks.shape)
    gallery = looks * lamps[1] + 0.1 * rng.uniform(size=looks.shape)
    return Toy(X, persons, cameras, probe, gallery)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def learner(name: str) -> MetricLearner:
    return made(name)


def fitted_distances(learner: MetricLearner, toy: Toy, **changed: Any) -> NDArray[np.float64]:
    """Distances of a fresh fit on the toy data, some of it replaced."""
    given = {"X": toy.X, "persons": toy.persons, "cameras": toy.cameras} | changed
    fresh = clone(learner)
    if "tol" in fresh.get_params():
        # Round-off moves the place where an iteration stops by no more than its tolerance.
        fresh.set_params(tol=1e-10)
    fresh.fit(given["X"], given["persons"], given["cameras"])
    return fresh.distances(toy.Q, toy.G)


@pytest.fixture(scope="module")
def expected_of(toy: Toy) -> Callable[[str], NDArray[np.float64]]:
    """Distances of a learner, by its name, on the toy data as they are."""
    return cache(lambda name: fitted_distances(made(name), toy))


@pytest.fixture
def expected(name: str, expected_of: Callable[[str], Any]) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = expected_of(name)
    return distances


def assert_same(D: NDArray[np.float64], expected: NDArray[np.float64], tol: float = 1e-7) -> None:
    np.testing.assert_allclose(D, expected, rtol=0, atol=tol * np.abs(expected).max())


@parametrize_with_checks([made(name) for name in NAMES])
def test_scikit_learn(estimator: MetricLearner, check: Any) -> None:
    check(estimator)


def test_parameters_are_declared_and_checked(name: str, learner: MetricLearner) -> None:
    check_param_validation(name, learner)


def test_docstring_says_whether_cameras_count(learner: MetricLearner) -> None:
    text = type(learner).__doc__ or ""
    assert "cameras" in text
    assert "References" in text


def test_example_of_the_docstring_runs(learner: MetricLearner) -> None:
    outcome = doctest.testmod(import_module(type(learner).__module__))
    assert outcome.attempted > 0
    assert outcome.failed == 0


# What must not change the result


def test_swapping_the_cameras_changes_nothing(
    learner: MetricLearner, toy: Toy, expected: Any
) -> None:
    swapped = fitted_distances(learner, toy, cameras=1 - toy.cameras)
    assert_same(swapped, expected)


def test_shuffling_the_rows_changes_nothing(
    learner: MetricLearner, toy: Toy, expected: Any
) -> None:
    order = np.random.default_rng(0).permutation(len(toy.X))
    shuffled = fitted_distances(
        learner, toy, X=toy.X[order], persons=toy.persons[order], cameras=toy.cameras[order]
    )
    assert_same(shuffled, expected, tol=1e-6)


def test_labels_are_opaque(learner: MetricLearner, toy: Toy, expected: Any) -> None:
    named = fitted_distances(
        learner,
        toy,
        persons=np.array([f"person {code:02d}" for code in toy.persons]),
        cameras=np.array(["door", "yard"])[toy.cameras],
    )
    np.testing.assert_array_equal(named, expected)


def test_float32_is_computed_in_float64(learner: MetricLearner, toy: Toy) -> None:
    single = toy.X.astype(np.float32)
    D = clone(learner).fit(single, toy.persons, toy.cameras).distances(toy.Q, toy.G)
    double = clone(learner).fit(single.astype(np.float64), toy.persons, toy.cameras)
    assert D.dtype == np.float64
    assert_same(D, double.distances(toy.Q, toy.G), tol=1e-6)


def test_layout_and_write_protection_do_not_matter(
    learner: MetricLearner, toy: Toy, expected: Any
) -> None:
    strided = np.repeat(toy.X, 2, axis=1)[:, ::2]
    protected = np.asfortranarray(toy.X)
    protected.setflags(write=False)
    assert_same(fitted_distances(learner, toy, X=strided), expected)
    assert_same(fitted_distances(learner, toy, X=protected), expected)


def test_fit_leaves_its_input_alone_and_repeats_itself(
    learner: MetricLearner, toy: Toy, expected: Any
) -> None:
    before = toy.X.copy()
    np.testing.assert_array_equal(fitted_distances(learner, toy), expected)
    np.testing.assert_array_equal(toy.X, before)


def test_constant_features_change_nothing(learner: MetricLearner, toy: Toy, expected: Any) -> None:
    def widened(X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.hstack([X, np.zeros((len(X), 1)), np.full((len(X), 2), 3.0)])

    wide = Toy(widened(toy.X), toy.persons, toy.cameras, widened(toy.Q), widened(toy.G))
    assert_same(fitted_distances(learner, wide), expected, tol=1e-6)


# What a metric is


def test_distances_are_those_of_the_embedding(learner: MetricLearner, toy: Toy) -> None:
    learner.fit(toy.X, toy.persons, toy.cameras)
    E, F = learner.transform(toy.Q), learner.transform(toy.G)
    assert E.shape == (len(toy.Q), learner.n_components_)
    D = learner.distances(toy.Q, toy.G)
    assert_same(D, ((E[:, None] - F[None]) ** 2).sum(axis=2))
    assert_same(learner.distances(toy.G, toy.Q), D.T)
    assert D.min() >= 0
    assert len(learner.get_feature_names_out()) == learner.n_components_


def test_it_finds_training_persons_again(learner: MetricLearner, toy: Toy, expected: Any) -> None:
    assert np.mean(expected.argmin(axis=1) == np.arange(len(toy.Q))) > 0.8
    learner.fit(toy.X, toy.persons, toy.cameras)
    assert learner.score(toy.X, toy.persons, cameras=toy.cameras) > 0.8


def test_three_cameras_and_no_cameras(learner: MetricLearner, toy: Toy) -> None:
    three = np.arange(len(toy.X)) % 3
    assert np.isfinite(fitted_distances(learner, toy, cameras=three)).all()
    assert np.isfinite(fitted_distances(learner, toy, cameras=None)).all()


def test_wide_data_never_need_a_square_of_the_features(learner: MetricLearner, toy: Toy) -> None:
    wide = np.tile(toy.X, (1, 250)) + np.random.default_rng(0).normal(size=(len(toy.X), 11000))
    tracemalloc.start()
    try:
        learner.fit(wide, toy.persons, toy.cameras)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * wide.nbytes  # 11000 x 11000 would be over 200 times


# What is refused


def test_one_camera(name: str, learner: MetricLearner, toy: Toy) -> None:
    alone = np.zeros(len(toy.X), dtype=int)
    if name in USES_CAMERAS:
        with pytest.raises(InputError, match="one camera"):
            learner.fit(toy.X, toy.persons, alone)
    else:
        D = fitted_distances(learner, toy, cameras=alone)
        np.testing.assert_array_equal(D, fitted_distances(learner, toy, cameras=None))


def test_no_person_in_two_cameras(name: str, learner: MetricLearner, toy: Toy) -> None:
    apart = toy.persons % 2
    if name in UNSUPERVISED:
        assert np.isfinite(fitted_distances(learner, toy, cameras=apart)).all()
    elif name in USES_CAMERAS:
        with pytest.raises(InputError, match="no person is seen by two cameras"):
            learner.fit(toy.X, toy.persons, apart)
    else:
        D = fitted_distances(learner, toy, cameras=apart)
        np.testing.assert_array_equal(D, fitted_distances(learner, toy, cameras=None))


def test_nobody_is_seen_twice(name: str, learner: MetricLearner, toy: Toy, expected: Any) -> None:
    everybody = np.arange(len(toy.X))
    if name in UNSUPERVISED:
        np.testing.assert_array_equal(fitted_distances(learner, toy, persons=everybody), expected)
        return
    with pytest.raises(InputError, match="person"):
        learner.fit(toy.X, everybody, toy.cameras)


def test_a_single_person(name: str, learner: MetricLearner, toy: Toy, expected: Any) -> None:
    nobody = np.zeros(len(toy.X))
    if name in UNSUPERVISED:
        np.testing.assert_array_equal(fitted_distances(learner, toy, persons=nobody), expected)
        return
    with pytest.raises(InputError, match="two persons"):
        learner.fit(toy.X, nobody, toy.cameras)


def test_equal_sightings(learner: MetricLearner, toy: Toy) -> None:
    with pytest.raises(InputError, match=r"same features|equal"):
        learner.fit(np.ones_like(toy.X), toy.persons, toy.cameras)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_no_numbers(learner: MetricLearner, toy: Toy, bad: float) -> None:
    X = toy.X.copy()
    X[3, 5] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        learner.fit(X, toy.persons, toy.cameras)
    learner.fit(toy.X, toy.persons, toy.cameras)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        learner.transform(X)


def test_sparse_matrices(learner: MetricLearner, toy: Toy) -> None:
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        learner.fit(sparse.csr_array(toy.X), toy.persons, toy.cameras)


def test_another_width_later(learner: MetricLearner, toy: Toy) -> None:
    learner.fit(toy.X, toy.persons, toy.cameras)
    with pytest.raises(ValueError, match="45 features"):
        learner.transform(np.ones((2, 45)))
    with pytest.raises(ValueError, match="43 features"):
        learner.distances(toy.Q, toy.G[:, 1:])


def test_cameras_of_another_length(learner: MetricLearner, toy: Toy) -> None:
    with pytest.raises(InputError, match="one camera for each row"):
        learner.fit(toy.X, toy.persons, toy.cameras[1:])


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_camera(learner: MetricLearner, toy: Toy, missing: Any) -> None:
    cameras = [missing, *toy.cameras[1:].tolist()]
    with pytest.raises(InputError, match=r"cameras .* leave out"):
        learner.fit(toy.X, toy.persons, cameras)


def test_persons_of_mixed_kinds(learner: MetricLearner, toy: Toy) -> None:
    persons = np.array(["ann", *toy.persons[1:].tolist()], dtype=object)
    with pytest.raises(InputError, match=r"persons .* all as text"):
        learner.fit(toy.X, persons, toy.cameras)


def test_use_before_fit(learner: MetricLearner, toy: Toy) -> None:
    with pytest.raises(NotFittedError):
        learner.distances(toy.Q, toy.G)


def test_a_failed_fit_leaves_a_fitted_learner_as_it_was(learner: MetricLearner, toy: Toy) -> None:
    learner.fit(toy.X, toy.persons, toy.cameras)
    before = learner.distances(toy.Q, toy.G)
    for X, persons in ((np.ones((9, 4)), np.zeros(9)), (np.ones((9, 4)), np.arange(9) % 3)):
        with pytest.raises(InputError):
            learner.fit(X, persons)
    np.testing.assert_array_equal(learner.distances(toy.Q, toy.G), before)


# What kernel learners promise besides


@pytest.fixture(params=[name for name in NAMES if "kernel" in made(name).get_params()])
def kernel_learner(request: pytest.FixtureRequest) -> MetricLearner:
    return made(request.param)


def test_a_function_and_its_matrix_are_the_same_kernel(
    kernel_learner: MetricLearner, toy: Toy
) -> None:
    def kernel(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(A @ B.T / 20)

    given = clone(kernel_learner).set_params(kernel=kernel)
    D = given.fit(toy.X, toy.persons, toy.cameras).distances(toy.Q, toy.G)
    matrix = clone(kernel_learner).set_params(kernel="precomputed")
    matrix.fit(kernel(toy.X, toy.X), toy.persons, toy.cameras)
    assert_same(matrix.distances(kernel(toy.Q, toy.X), kernel(toy.G, toy.X)), D)


@pytest.mark.parametrize("kernel", ["linear", "poly", "chi2", "chi2-rbf", "exp"])
def test_every_kernel_finds_training_persons_again(
    kernel_learner: MetricLearner, toy: Toy, kernel: str
) -> None:
    D = fitted_distances(kernel_learner.set_params(kernel=kernel), toy)
    assert np.mean(D.argmin(axis=1) == np.arange(len(toy.Q))) > 0.8


def test_a_precomputed_matrix_must_be_square(kernel_learner: MetricLearner, toy: Toy) -> None:
    kernel_learner.set_params(kernel="precomputed")
    with pytest.raises(InputError, match="square"):
        kernel_learner.fit(toy.X, toy.persons, toy.cameras)


def test_chi_square_refuses_negative_features(kernel_learner: MetricLearner, toy: Toy) -> None:
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        kernel_learner.set_params(kernel="chi2").fit(toy.X - 1, toy.persons, toy.cameras)


def test_a_function_as_kernel_cannot_be_saved(
    kernel_learner: MetricLearner, toy: Toy, tmp_path: Path
) -> None:
    kernel_learner.set_params(kernel=lambda A, B: A @ B.T)
    kernel_learner.fit(toy.X, toy.persons, toy.cameras)
    with pytest.raises(InputError, match="precomputed"):
        kernel_learner.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


# How it is used


def test_saved_and_loaded_it_is_the_same(learner: MetricLearner, toy: Toy, tmp_path: Path) -> None:
    learner.fit(toy.X, toy.persons, toy.cameras).save(tmp_path / "model")
    loaded = resight.load(tmp_path / "model")
    assert type(loaded) is type(learner)
    assert loaded.get_params() == learner.get_params()
    np.testing.assert_array_equal(loaded.distances(toy.Q, toy.G), learner.distances(toy.Q, toy.G))


def variants() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every learner with each word and each answer that one of its parameters takes."""
    for name in NAMES:
        yield name, {}
        for parameter, allowed in made(name)._parameter_constraints.items():
            for one in allowed:
                words = one.options if isinstance(one, StrOptions) else ()
                for value in (True, False) if one == "boolean" else sorted(words):
                    more = {"reg": 0.1} if (name, value) == ("KISSME", "full") else {}  # few pairs
                    yield name, {parameter: value, **more}
    yield "KXQDA", {"landmarks": 8}
    yield "KXQDA", {"landmarks": 8, "kernel": "precomputed"}
    yield "AutoKXQDA", {"setting": None, "n_repeats": 1}


def undeclared(thing: SavableMixin) -> set[str]:
    """Attributes of an object and its parts that would not be saved."""
    own = {name for name in vars(thing) if not name.startswith("_")}
    parts = [value for value in vars(thing).values() if isinstance(value, SavableMixin)]
    return (own - set(thing.state_names())).union(*map(undeclared, parts))


@pytest.mark.filterwarnings("ignore:.*too few to choose from")
@pytest.mark.parametrize(("name", "params"), list(variants()), ids=str)
def test_all_that_is_learned_is_declared_and_saved(
    name: str, params: dict[str, Any], toy: Toy, tmp_path: Path
) -> None:
    learner, X, Q, G = made(name, **params), toy.X, toy.Q, toy.G
    if params.get("kernel") == "precomputed":
        X, Q, G = (rows @ toy.X.T for rows in (X, Q, G))
    learner.fit(X, toy.persons, toy.cameras).save(tmp_path / "model")
    assert undeclared(learner) == set()
    loaded = resight.load(tmp_path / "model")
    assert vars(loaded).keys() == vars(learner).keys()
    np.testing.assert_array_equal(loaded.distances(Q, G), learner.distances(Q, G))


@pytest.fixture
def routed_metadata() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routed_metadata")
def test_pipeline_in_a_grid_search_over_persons(learner: MetricLearner, toy: Toy) -> None:
    learner.set_fit_request(cameras=True).set_score_request(cameras=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), learner),
        {"standardscaler__with_std": [True, False]},
        cv=GroupKFold(3),
        error_score="raise",
    )
    search.fit(toy.X, toy.persons, cameras=toy.cameras, groups=toy.persons)
    assert search.best_score_ > 0.3
    assert search.transform(toy.Q).shape[0] == len(toy.Q)


# What the guide says

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "learners.md"


def test_the_guide_says_rightly_which_learners_use_cameras() -> None:
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    rows = {line.split("`")[1]: line for line in lines if re.match(r"\| `\w+` \|.*\[\d+", line)}
    assert {name for name, row in rows.items() if "persons only" not in row} == (
        USES_CAMERAS & set(rows)
    )
    assert len(rows) > 10


def test_the_code_of_the_guide_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert names["D"].shape == (40, 40)
    assert names["search"].best_score_ > 0.3
