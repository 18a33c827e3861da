"""Choosing everything for one split, against one plain run of that split.

Vectors as large as the descriptors of GRID (250 people in two cameras, 775 distractors), and of 110
people in two cameras, drawn at random so that people are about as hard to tell apart. "Choosing"
forms the inner products of plain and mirrored descriptors, searches on the training people, fits
what was chosen and ranks. A plain run normalises the features, forms the kernel, fits k-XQDA as in
the paper and ranks, without any Gram matrix; with float64 products, the default of `KXQDA`, and
with float32 ones, which Gram space uses too. Allowed are 20 plain runs at 110 people, half of them
held out, with the descriptors of the recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.machine import best_cpu_seconds
from resight.datasets.sightings import Sightings
from resight.descriptors import descriptor
from resight.experiments.in_gram_space import SplitRunner
from resight.experiments.tables import markdown_table
from resight.experiments.trials import Trial, rank_directions
from resight.learners._base import squared_euclidean
from resight.learners.kxqda import KXQDA
from resight.learners.normalizer import BlockNormalizer
from resight.plans import DESCRIPTOR, Plan
from resight.protocols import Protocol, Split
from resight.tuning.candidates import AUTO_POOL
from resight.tuning.gram import GramSpace

GRID, SMALL = (250, 775), (110, 0)  # people, distractors
CASES = {
    "GRID's size, GOG": (("gog",), GRID),
    "GRID's size, the pool of four": (AUTO_POOL, GRID),
    "110 people, the recipe's descriptors": (tuple(DESCRIPTOR.split("+")), SMALL),
}
# Directions in which people differ, in which sightings of one person differ too, and the noise of
# each feature, all in units of the variation that one direction gives a feature.
LOOKS, NUISANCES, NOISE = 60, 60, 60.0

Features = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """One split: plain and mirrored features of each descriptor, and its blocks."""

    sightings: Sightings
    protocol: Protocol
    plain: list[Features]
    mirrored: list[Features]
    blocks: list[tuple[int, ...]]

    @property
    def split(self) -> Split:
        """The only split."""
        return self.protocol.splits[0]


def run() -> str:
    """Return the section as Markdown."""
    rows = []
    for title, (names, size) in CASES.items():
        case = draw_case([descriptor(name).blocks for name in names], *size)
        best = best_cpu_seconds(
            {
                "choosing": partial(choose, case),
                "plain": partial(plain_run, case, KXQDA()),
                "float32": partial(plain_run, case, KXQDA(precision="float32")),
            },
            2,
        )
        tried = len(choose(case).choice or [])
        ratios = [f"{best['choosing'] / best[name]:.1f}" for name in ("plain", "float32")]
        rows.append([title, str(tried), f"{best['choosing']:.2f} s", *ratios])
    headings = (
        "one split",
        "settings tried",
        "choosing",
        "in plain runs",
        "in plain runs, float32",
    )
    return markdown_table(headings, rows)


def draw_case(blocks: list[tuple[int, ...]], people: int, distractors: int) -> Case:
    """Draw features with the given blocks for each descriptor."""
    rng = np.random.default_rng(0)
    everybody = people + distractors
    codes = np.concatenate([np.arange(people), np.arange(everybody)])
    cameras = np.repeat(["A", "B"], [people, everybody])
    paths = [f"{camera}/{code}.png" for camera, code in zip(cameras, codes, strict=True)]
    roles = np.where(codes < people, "", "distractor")
    sightings = Sightings(np.array(paths), codes.astype(str), cameras, roles=roles)
    learned, known = codes < people // 2, codes < people
    split = Split(
        np.flatnonzero(learned),
        np.flatnonzero(known & ~learned & (cameras == "A")),
        np.flatnonzero(~learned & (cameras == "B")),
    )
    plain = [_draw(rng, codes, everybody, sum(widths)) for widths in blocks]
    mirrored = [part + rng.standard_normal(part.shape, dtype=np.float32) for part in plain]
    return Case(sightings, Protocol("halves", (split,)), plain, mirrored, blocks)


def _draw(
    rng: np.random.Generator, codes: NDArray[np.intp], everybody: int, width: int
) -> Features:
    looks = rng.standard_normal((everybody, LOOKS), dtype=np.float32)[codes]
    nuisances = rng.standard_normal((len(codes), NUISANCES), dtype=np.float32)
    varying = np.concatenate([looks, nuisances], axis=1)
    features = varying @ rng.standard_normal((varying.shape[1], width), dtype=np.float32)
    features += NOISE * rng.standard_normal(features.shape, dtype=np.float32)
    return features


def choose(case: Case) -> Trial:
    """Choose, fit and rank, from features."""
    space = GramSpace([*case.plain, *case.mirrored], case.blocks * 2, trainable=case.split.train)
    plan = Plan("auto", "auto", {"mirrored": True})
    with threadpool_limits(1):
        return SplitRunner(case.sightings, case.protocol, space, case.split).measure([plan])[0]


def plain_run(case: Case, learner: KXQDA) -> None:
    """Normalise, form the kernel, fit and rank, from features."""
    split, sightings = case.split, case.sightings
    blocks = tuple(width for widths in case.blocks for width in widths)
    train, test = (
        np.concatenate([part[rows] for part in case.plain], axis=1)
        for rows in (split.train, split.test)
    )
    normalizer = BlockNormalizer(blocks).fit(train)
    learner.fit(
        normalizer.transform(train), sightings.persons[split.train], sightings.cameras[split.train]
    )
    embedding = learner.transform(normalizer.transform(test))

    def between(a: NDArray[np.intp], b: NDArray[np.intp]) -> NDArray[np.float64]:
        return squared_euclidean(embedding[a], embedding[b])

    rank_directions(sightings, case.protocol, split, between)


if __name__ == "__main__":
    print(run())
