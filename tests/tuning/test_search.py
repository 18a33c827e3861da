from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.tuning.candidates import (
    AUTO_CURVED,
    AUTO_LINEAR,
    AUTO_MIRROR,
    AUTO_POOL,
    KNFST_KERNEL,
    XQDA,
    Candidate,
)
from resight.tuning.fold_metrics import Fold
from resight.tuning.gram import GramSpace
from resight.tuning.search import Search, default_shares, folds_for
from resight.tuning.settings import PLAIN, Part, Setting

PAPER = Candidate("rbf", 1.0, "identity", 1e-7)


@pytest.fixture(scope="module")
def data():
    """Two descriptors: one tells people apart, the other is noise."""
    rng = np.random.default_rng(2)
    persons = np.tile(np.arange(36), 2)
    cameras = np.repeat(["A", "B"], 36)
    useful = rng.normal(size=(36, 20))[persons] + 0.7 * rng.normal(size=(72, 20))
    noise = rng.normal(size=(72, 30))
    return useful, noise, persons, cameras


def search(data, features=None, **options):
    useful, noise, persons, cameras = data
    space = GramSpace(features or [useful, noise], precision="float64")
    rows = np.flatnonzero(persons < 24)
    return Search(space, rows, persons[rows], cameras[rows], **options)


def test_what_may_be_chosen_is_what_was_announced():
    assert AUTO_POOL == ("gog", "lomo", "lomo-dagger", "whos-dagger")
    assert AUTO_MIRROR == (False, True)
    assert [one.reg for one in AUTO_LINEAR] == [1e-2, 1e-3, 1e-4]
    assert [one.kernel for one in AUTO_CURVED] == ["rbf", "rbf", "poly"]


def test_a_descriptor_of_noise_loses_its_weight(data):
    alone = sum(weight for weight, part in search(data).run().parts if part.weights == (0.0, 1.0))
    assert alone == 0.0


def test_better_mirrored_descriptors_are_taken(data):
    useful = data[0]
    worse = useful + 1.5 * np.random.default_rng(0).normal(size=useful.shape)
    assert search(data, [worse, useful], mirrored=True, n_repeats=1).run().variant == "mirror"
    assert search(data, [useful, worse], mirrored=True, n_repeats=1).run().variant == "plain"
    assert search(data, [useful, useful], mirrored=True, n_repeats=1).run().variant == "plain"


def test_mirror_images_that_help_only_what_learns_nothing_are_left_alone():
    """Strong noise in two directions, which learning removes, against weaker noise in all."""
    rng, n = np.random.default_rng(3), 80
    persons, cameras = np.tile(np.arange(n), 2), np.repeat(["A", "B"], n)
    signal = rng.normal(size=(n, 40))[persons]
    strong = signal + 1.5 * rng.normal(size=(2 * n, 2)) @ rng.normal(size=(2, 40))
    weak = signal + rng.normal(size=(2 * n, 40))
    space = GramSpace([strong, weak], precision="float64")
    found = Search(space, np.arange(2 * n), persons, cameras, mirrored=True, n_repeats=1)
    assert found.run().variant == "plain"
    scores = {(one.stage, one.part.learner): one.mean for one in found.tried}
    assert scores["mirror", "euclidean"] > scores["plain", "euclidean"] + 0.4
    assert scores["plain", "kxqda"] > scores["mirror", "kxqda"]


def test_the_choice_is_reproducible_and_complete(data):
    first, second = search(data, seed=3), search(data, seed=3)
    assert first.run() == second.run()
    stages = list(dict.fromkeys(one.stage for one in first.tried))
    assert stages == ["plain", "together", "one descriptor", "sum of kernels"]
    parts = [one.part for one in first.tried]
    assert len(set(parts)) == len(parts)
    assert all(len(one.scores) in (5, 15) for one in first.tried)


def test_only_training_rows_are_looked_at(data):
    useful, noise, persons, cameras = data
    rows, outside = np.flatnonzero(persons < 24), np.flatnonzero(persons >= 24)
    space = GramSpace([useful, noise], precision="float64")
    space.parts = [[part[0]._replace(short=part[0].short.copy())] for part in space.parts]
    for block in space.blocks:
        block.gram[outside], block.gram[:, outside] = np.nan, np.nan
        block.squares[outside], block.short[outside] = np.nan, np.nan
    chosen = Search(space, rows, persons[rows], cameras[rows], n_repeats=1).run()
    known = GramSpace([useful[rows], noise[rows]], precision="float64")
    everything = np.arange(len(rows))
    again = Search(known, everything, persons[rows], cameras[rows], n_repeats=1).run()
    assert chosen == again


def test_the_more_people_the_more_is_learned_by_default():
    parts = [Part("euclidean", (1.0,)), Part("kxqda", (1.0,), (XQDA,))]
    shares = [default_shares(parts, people)[1] for people in (6, 35, 1000)]
    assert shares == sorted(shares)
    assert shares[1] == pytest.approx(0.5)
    assert default_shares(parts[1:], 6) == pytest.approx([1.0])


def network_and_other(noise, people):
    """A space of a network's vectors and of another descriptor, with so much noise."""
    rng = np.random.default_rng(4)
    persons, cameras = np.tile(np.arange(people), 2), np.repeat([0, 1], people)
    identity = rng.normal(size=(2, people, 30))
    network = identity[0][persons] + 0.7 * rng.normal(size=(2 * people, 30))
    other = identity[1][persons] + noise * rng.normal(size=(2 * people, 30))
    space = GramSpace([network, other], precision="float64")
    space.networks = [True, False]
    return Search(space, np.arange(2 * people), persons, cameras, n_repeats=1)


@pytest.mark.parametrize(("noise", "alone"), [(6.0, True), (0.3, False)])
def test_a_network_is_joined_only_by_what_clearly_helps_it(noise, alone):
    search = network_and_other(noise, 16)
    search.run()
    part = search.tried[0].part
    assert part.learner == "cosine" or not alone
    assert part.weights[0] > 0.0
    assert (part.weights[1] == 0.0) is alone


@pytest.mark.parametrize("people", [1, 15])
def test_of_too_few_people_a_network_is_compared_by_its_cosine_alone(people):
    search = network_and_other(0.3, people)
    assert search.run() == Setting(((1.0, Part("cosine", (1.0, 0.0))),))
    assert f"cosine of the network's vectors alone; label {16 - people} more" in search.stopped


def test_of_too_few_people_mirror_images_are_not_chosen(data):
    useful, noise, persons, cameras = data
    rows = np.flatnonzero(persons < 15)
    space = GramSpace([noise, useful], precision="float64")
    search = Search(space, rows, persons[rows], cameras[rows], mirrored=True)
    assert search.run() == Setting(((1.0, Part("euclidean", (1.0,))),))
    assert search.tried == []


def test_few_people_are_divided_into_more_folds():
    assert folds_for(10, None, None) == (5, 3)
    assert folds_for(6, None, None) == (3, 3)
    assert folds_for(125, None, None) == (3, 2)
    assert folds_for(10, 2, 1) == (2, 1)


def test_people_seen_by_one_camera_only_are_refused(data):
    useful, _, persons, cameras = data
    apart = np.where(cameras == "A", persons, persons + 100)
    with pytest.raises(InputError, match="none of the 72 people is seen by two cameras"):
        Search(GramSpace([useful]), np.arange(72), apart, cameras)


def embeddings(rng, people):
    """Good embeddings with noise of the same size in all directions."""
    persons, cameras = np.tile(np.arange(people), 2), np.repeat([0, 1], people)
    rows = rng.normal(size=(people, 64))[persons] + 0.8 * rng.normal(size=(2 * people, 64))
    return [rows], persons, cameras


def colour_cast(rng, people):
    """Two cameras with gains and offsets of their own, and light that varies within each."""
    persons, cameras = np.tile(np.arange(people), 2), np.repeat([0, 1], people)
    rows = rng.normal(size=(people, 40))[persons] @ rng.normal(size=(40, 200))
    rows += 3.0 * rng.normal(size=(2 * people, 10)) @ rng.normal(size=(10, 200))
    rows += 5.0 * rng.normal(size=rows.shape)
    for camera in (0, 1):
        gain, offset = np.exp(0.5 * rng.normal(size=200)), 5.0 * rng.normal(size=200)
        rows[cameras == camera] = gain * rows[cameras == camera] + offset
    return [rows], persons, cameras


def useless_descriptor(rng, people):
    """The descriptor of the colour cast beside one that is pure noise."""
    (rows,), persons, cameras = colour_cast(rng, people)
    return [rows, rng.normal(size=(len(rows), 400))], persons, cameras


def rank1(distances, persons, cameras):
    """Percentage found first, both ways."""
    first, second = np.flatnonzero(cameras == 0), np.flatnonzero(cameras == 1)
    across = distances[np.ix_(first, second)]
    same = persons[first][:, None] == persons[second][None, :]
    found = [same[np.arange(len(same)), across.argmin(axis=1)]]
    found.append(same[across.argmin(axis=0), np.arange(same.shape[1])])
    return 100.0 * float(np.mean(found))


@pytest.mark.parametrize("draw", [embeddings, colour_cast, useless_descriptor])
def test_the_choice_is_as_good_as_the_best_fixed_one(draw):
    rng = np.random.default_rng(7)
    own, fixed = [], []
    for _ in range(2):
        features, persons, cameras = draw(rng, 255)
        space = GramSpace(features, precision="float64")
        train, test = np.flatnonzero(persons < 55), np.flatnonzero(persons >= 55)
        fold = Fold(space.descriptors(), train, test, persons[train], cameras[train])
        settings = [Setting(((1.0, part),)) for part in fixed_parts(len(features))]
        settings.append(Search(space, train, persons[train], cameras[train]).run())
        *of_fixed, chosen = (
            rank1(fold.distances(one), persons[test], cameras[test]) for one in settings
        )
        own.append(chosen)
        fixed.append(of_fixed)
    assert np.mean(own) >= np.mean(fixed, axis=0).max() - 1.0


def fixed_parts(n):
    """Every fixed learner, on all descriptors and on the first."""
    parts = []
    for weights in dict.fromkeys([(1.0,) * n, (1.0,) + (0.0,) * (n - 1)]):
        parts += [Part(name, weights) for name in PLAIN]
        parts += [Part("kxqda", weights, (one,)) for one in (XQDA, PAPER)]
        parts.append(Part("knfst", weights, (KNFST_KERNEL,)))
    return parts
