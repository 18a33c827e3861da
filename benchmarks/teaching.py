"""Teaching on the page against labelling people at random, on synthetic cameras.

From 20 labelled people, ten rounds: the page proposes sightings; somebody who knows the truth looks
through the results of each, rejects the first if it is wrong and confirms the right one if it is
there; the model is fitted again. The other arm labels as many people, drawn at random, in each
round. Both are measured by rank 1 across cameras on people that neither has seen.

The rule that proposes was chosen on drawings 100 to 104; it is measured on drawings that it has
never met.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight import KXQDA
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Filter, Gallery
from resight.gallery.adding import Described
from resight.gallery.proposing import propose
from resight.gallery.teaching import fit_like, labelled
from resight.learners._scoring import cross_camera_rank1
from resight.models.model import Model

DESCRIPTOR = "whos-star"
START, POOL, UNSEEN = 20, 200, 120
ROUNDS, PER_ROUND, LOOKED_AT = 10, 8, 24  # the page shows 24 results
FRESH = (200, 201, 202, 203, 204)


def run() -> str:
    """Run both arms for each seed and write a table."""
    curves = np.array([_seed(seed) for seed in FRESH])  # (seeds, arms, rounds + 1)
    first, last = curves[:, :, 0], curves[:, :, -1]
    gains = last - first
    difference = gains[:, 0] - gains[:, 1]
    lines = [
        f"{START} labelled people at first, {ROUNDS} rounds of {PER_ROUND} people; drawings "
        f"{FRESH[0]} to {FRESH[-1]}, on which nothing was chosen.",
        "",
        "| round | people labelled | taught on the page | labelled at random |",
        "|---|---|---|---|",
    ]
    for number in range(ROUNDS + 1):
        page, chance = (_spread(curves[:, arm, number]) for arm in (0, 1))
        lines.append(f"| {number} | {START + PER_ROUND * number} | {page} | {chance} |")
    lines += [
        "",
        f"Rank 1 on {UNSEEN} unseen people, percent, mean and standard deviation over seeds.",
        f"Gain: page {_spread(gains[:, 0])}, random {_spread(gains[:, 1])}, "
        f"difference {_spread(difference)} "
        f"(by seed: {', '.join(f'{value:+.1f}' for value in difference)}).",
        "",
    ]
    return "\n".join(lines)


def _spread(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"


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
        for arm in (_page, _random):
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
    """Answer what the page proposes until enough people are known, round after round."""
    while True:
        confirmed = 0
        for query in propose(gallery.view, POOL):
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


def _rank1(model: Any, test: tuple[NDArray[np.float32], Any, Any]) -> float:
    features, persons, cameras = test
    return 100.0 * cross_camera_rank1(model.distances(features, features), persons, cameras)


if __name__ == "__main__":
    print(run())
