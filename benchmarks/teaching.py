"""Teaching on the page against other choices of whom to label, on synthetic cameras.

From 20 labelled people, ten rounds: the page proposes sightings; somebody who knows the truth looks
through the results of each, rejects the first if it is wrong and confirms the right one if it is
there; the model is fitted again. The second arm asks for the sightings that the joint criterion of
IRS (Wang et al., IJCV 2018) puts first, the third labels as many people, drawn at random, in each
round. All are measured by rank 1 across cameras on people that none of them has seen.

The rule that proposes was chosen on drawings 100 to 104; it is measured on drawings that it has
never met.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from resight import KXQDA
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Filter, Gallery
from resight.gallery.adding import Described
from resight.gallery.groups import propose
from resight.gallery.teaching import fit_like, labelled
from resight.gallery.view import features_of
from resight.learners._base import squared_euclidean
from resight.learners._scoring import cross_camera_rank1
from resight.models.model import Model

DESCRIPTOR = "whos-star"
START, POOL, UNSEEN = 20, 200, 120
ROUNDS, PER_ROUND, LOOKED_AT = 10, 8, 24  # the page shows 24 results
FRESH = (200, 201, 202, 203, 204)


def run() -> str:
    """Run all arms for each seed and write a table."""
    curves = np.array([_seed(seed) for seed in FRESH])  # (seeds, arms, rounds + 1)
    first, last = curves[:, :, 0], curves[:, :, -1]
    gains = last - first
    over_random = gains[:, :2] - gains[:, 2:]
    lines = [
        f"{START} labelled people at first, {ROUNDS} rounds of {PER_ROUND} people; drawings "
        f"{FRESH[0]} to {FRESH[-1]}, on which nothing was chosen.",
        "",
        "| round | people labelled | taught on the page | chosen as by IRS | at random |",
        "|---|---|---|---|---|",
    ]
    for number in range(ROUNDS + 1):
        cells = " | ".join(_spread(curves[:, arm, number]) for arm in range(len(ARMS)))
        lines.append(f"| {number} | {START + PER_ROUND * number} | {cells} |")
    lines += [
        "",
        f"Rank 1 on {UNSEEN} unseen people, percent, mean and standard deviation over seeds.",
        f"Gain: page {_spread(gains[:, 0])}, IRS {_spread(gains[:, 1])}, "
        f"random {_spread(gains[:, 2])}. Over random: {_by_seed('page', over_random[:, 0])}; "
        f"{_by_seed('IRS', over_random[:, 1])}.",
        "",
    ]
    return "\n".join(lines)


def _spread(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"


def _by_seed(arm: str, gains: NDArray[np.float64]) -> str:
    return f"{arm} {_spread(gains)} (by seed {', '.join(f'{value:+.1f}' for value in gains)})"


def _seed(seed: int) -> list[list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        drawn = draw_cameras(Path(folder) / "cameras", START + POOL + UNSEEN, 2, seed=seed)
        model = Model((DESCRIPTOR,), KXQDA())
        features = model.describe(drawn.files())
        people = np.random.default_rng(seed).permutation(np.unique(drawn.persons))
        known = np.isin(drawn.persons, people[:START])
        unseen = np.isin(drawn.persons, people[START + POOL :])
        model.fit(features[known], drawn.persons[known], drawn.cameras[known])
        test = (features[unseen], drawn.persons[unseen], drawn.cameras[unseen])
        arms = []
        for arm in ARMS:
            place = Path(folder) / arm.__name__
            gallery, truth = _gallery(place, model, drawn, features, known, ~unseen)
            rounds = arm(gallery, truth, np.random.default_rng(1000 + seed))
            curve = [_rank1(model, test)]
            for _ in range(ROUNDS):
                next(rounds)
                taught = fit_like(gallery.model, labelled(gallery))
                gallery.rebuild(taught, origin="refit")
                curve.append(_rank1(taught, test))
            arms.append(curve)
        return arms


def _gallery(
    place: Path,
    model: Model,
    drawn: Sightings,
    features: NDArray[np.float32],
    known: NDArray[np.bool_],
    inside: NDArray[np.bool_],
) -> tuple[Gallery, dict[str, str]]:
    """Make a gallery in which only the first people are labelled; return it and the truth."""
    times = np.arange(len(drawn), dtype=float)  # tells which row a sighting is
    persons = np.where(known, drawn.persons, "")
    given = replace(drawn, persons=persons, times=times).select(inside)
    gallery = Gallery.create(place, model)
    gallery.add(given, described=Described(features[inside], model.descriptor_fingerprint))
    table = gallery.view.table
    rows = table.times.astype(int)
    return gallery, dict(zip(table.ids.tolist(), drawn.persons[rows].tolist(), strict=True))


def _page(gallery: Gallery, truth: dict[str, str], rng: np.random.Generator) -> Iterator[None]:
    """Answer what the page proposes, round after round."""
    return _answered(gallery, truth, lambda: propose(gallery.view, POOL))


def _joint(gallery: Gallery, truth: dict[str, str], rng: np.random.Generator) -> Iterator[None]:
    """Answer what the criterion of IRS puts first, round after round."""
    return _answered(gallery, truth, lambda: joint_choice(gallery))


def joint_choice(gallery: Gallery) -> list[str]:
    """Order unknown sightings by joint exploration and exploitation, the best first.

    The sum of three criteria, each between 0 and 1 over the pool: distance of the features to the
    nearest labelled sighting; their distance to the match that the model ranks first in another
    camera; entropy of the model's ranking there.
    """
    view = gallery.view
    ids = view.table.ids.tolist()
    kept = features_of(gallery.engine, view.manifest, view.model, ids)
    X = view.model.normalized(np.array([kept[one] for one in ids])).astype(float)
    assert view.index is not None  # small enough to be in memory
    E = view.index.embeddings.astype(float)
    unknown = np.flatnonzero(view.persons == "")
    plain, learned = squared_euclidean(X[unknown], X), squared_euclidean(E[unknown], E)
    elsewhere = view.table.cameras[unknown][:, None] != view.table.cameras
    diversity = np.where(view.persons != "", plain, np.inf).min(axis=1)
    first = np.where(elsewhere, learned, np.inf).argmin(axis=1)
    discrepancy = plain[np.arange(len(unknown)), first]
    likely = np.exp(-learned / learned[elsewhere].mean()) * elsewhere
    likely /= likely.sum(axis=1, keepdims=True)
    uncertainty = -xlogy(likely, likely).sum(axis=1)
    score = sum(
        (values - values.min()) / np.ptp(values) for values in (diversity, discrepancy, uncertainty)
    )
    return [ids[row] for row in unknown[np.argsort(-score, kind="stable")]]


def _answered(
    gallery: Gallery, truth: dict[str, str], proposals: Callable[[], list[str]]
) -> Iterator[None]:
    """Answer proposals until enough people are known, round after round."""
    while True:
        confirmed = 0
        for query in proposals():
            if confirmed == PER_ROUND:
                break
            if not gallery.view.labels.person(query):
                confirmed += _answer(gallery, truth, query)
        yield


def _answer(gallery: Gallery, truth: dict[str, str], query: str) -> bool:
    """Look through the results: reject the first if it is wrong, confirm the right one."""
    camera = str(gallery.view.table.cameras[gallery.view.rows[query]])
    hits = gallery.search_like(query, LOOKED_AT, Filter(exclude_cameras=(camera,)))
    right = next((hit for hit in hits if truth[hit.id] == truth[query]), None)
    if hits[0] is not right and hits[0].verdict is None:
        gallery.teach("different", query, hits[0].id)
    if right is not None:
        gallery.teach("same", query, right.id)
    return right is not None


def _random(gallery: Gallery, truth: dict[str, str], rng: np.random.Generator) -> Iterator[None]:
    """Label people drawn at random, as many in each round."""
    pairs: dict[str, list[str]] = {}
    for sighting, person in truth.items():
        if not gallery.view.labels.person(sighting):
            pairs.setdefault(person, []).append(sighting)
    order = rng.permutation(sorted(pairs))
    for start in range(0, PER_ROUND * ROUNDS, PER_ROUND):
        for person in order[start : start + PER_ROUND]:
            gallery.teach("same", *pairs[person])
        yield


ARMS = (_page, _joint, _random)


def _rank1(model: Any, test: tuple[NDArray[np.float32], Any, Any]) -> float:
    features, persons, cameras = test
    return 100.0 * cross_camera_rank1(model.distances(features, features), persons, cameras)


if __name__ == "__main__":
    print(run())
