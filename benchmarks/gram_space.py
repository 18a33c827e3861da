"""Ten splits in Gram space, against their own arithmetic and against ten separate runs.

Features as large as GOG's of GRID, PRID2011 and PRID450S, drawn at random: the arithmetic does
not depend on their values. A separate run normalises the features of its split, forms the kernel,
fits and ranks; in Gram space the inner products are formed once. "Bare" is the least that must be
computed: the Gram matrices and the ten eigenproblems. Ratios are to the time in Gram space, where
products are float32; separate runs are measured with `KXQDA()` as it is and, like for like, with
float32 products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import best_cpu_seconds
from resight.datasets.sightings import Sightings
from resight.experiments import in_gram_space
from resight.experiments.tables import markdown_table
from resight.experiments.trials import rank_directions
from resight.kernels import Kernel
from resight.learners._base import squared_euclidean
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._laplacian import CrossCameraPairs
from resight.learners.kxqda import KXQDA
from resight.learners.normalizer import BlockNormalizer
from resight.plans import Plan
from resight.protocols import Protocol, Split
from resight.tuning.gram import GramSpace

BLOCKS = (7567, 7567, 7567, 4921)
N_SPLITS = 10
SIZES = {"GRID": (250, 775), "PRID2011": (200, 734), "PRID450S": (450, 0)}  # people, distractors


@dataclass(frozen=True)
class Case:
    """A dataset's size: people in two cameras, distractors in the gallery's camera."""

    sightings: Sightings
    protocol: Protocol
    features: NDArray[np.float32]


def _rows() -> list[list[str]]:
    """Measure all sizes; one row each."""
    rows = []
    for name, (n_people, n_distractors) in SIZES.items():
        case = _case(n_people, n_distractors)
        works = {
            "bare": lambda case=case: _bare(case),
            "together": lambda case=case: _together(case),
            "separate": lambda case=case: _separate(case, KXQDA()),
            "float32": lambda case=case: _separate(case, KXQDA(precision="float32")),
        }
        best = best_cpu_seconds(works, 2)
        together = best["together"]
        rows.append(
            [
                name,
                f"{together:.2f} s",
                f"{together / best['bare']:.2f}",
                f"{best['separate'] / together:.1f}",
                f"{best['float32'] / together:.1f}",
            ]
        )
    return rows


def run() -> str:
    """Return the section as Markdown."""
    headings = (
        "10 splits at the size of",
        "Gram space",
        "to bare arithmetic",
        "separate runs",
        "separate, float32 products",
    )
    return markdown_table(headings, _rows())


def _case(n_people: int, n_distractors: int) -> Case:
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(n_people), np.arange(n_people + n_distractors)])
    cameras = np.repeat(["A", "B"], [n_people, n_people + n_distractors])
    roles = np.where(codes < n_people, "", "distractor")
    paths = [f"{camera}/{code}.png" for camera, code in zip(cameras, codes, strict=True)]
    looks = rng.normal(size=(n_people + n_distractors, sum(BLOCKS))).astype(np.float32)
    features = looks[codes] + rng.normal(size=(len(codes), sum(BLOCKS))).astype(np.float32)
    sightings = Sightings(np.array(paths), codes.astype(str), cameras, roles=roles)
    splits = tuple(_split(rng, codes, cameras, n_people) for _ in range(N_SPLITS))
    return Case(sightings, Protocol("halves", splits), features)


def _split(
    rng: np.random.Generator, codes: NDArray[np.intp], cameras: NDArray[np.str_], n_people: int
) -> Split:
    trained = rng.permutation(n_people)[: n_people // 2]
    learned = np.isin(codes, trained)
    known = (codes < n_people) & ~learned
    return Split(
        np.flatnonzero(learned),
        np.flatnonzero(known & (cameras == "A")),
        np.flatnonzero(~learned & (cameras == "B")),
    )


def _bare(case: Case) -> None:
    space = GramSpace([case.features], [BLOCKS], trainable=_trainable(case))
    products, columns = np.sum([block.gram for block in space.blocks], axis=0), _trainable(case)
    for split in case.protocol.splits:
        learned = np.searchsorted(columns, split.train)
        K = Kernel("rbf").fit_products(products[np.ix_(learned, split.train)])
        KernelPencil(K, _pairs(case, split)).solve(1e-7, "identity")


def _together(case: Case) -> None:
    space = GramSpace([case.features], [BLOCKS], trainable=_trainable(case))
    in_gram_space.measure(case.sightings, case.protocol, space, [Plan("kxqda")])


def _separate(case: Case, learner: KXQDA) -> None:
    for split in case.protocol.splits:
        train = case.features[split.train]
        normalizer = BlockNormalizer(BLOCKS).fit(train)
        learner.fit(
            normalizer.transform(train),
            case.sightings.persons[split.train],
            case.sightings.cameras[split.train],
        )
        embedding = learner.transform(normalizer.transform(case.features[split.test]))
        between = partial(_between, embedding)
        rank_directions(case.sightings, case.protocol, split, between)


def _between(
    embedding: NDArray[np.float64], a: NDArray[np.intp], b: NDArray[np.intp]
) -> NDArray[np.float64]:
    return squared_euclidean(embedding[a], embedding[b])


def _trainable(case: Case) -> NDArray[np.intp]:
    return np.unique(np.concatenate([split.train for split in case.protocol.splits]))


def _pairs(case: Case, split: Split) -> CrossCameraPairs:
    persons = np.unique(case.sightings.persons[split.train], return_inverse=True)[1]
    cameras = np.unique(case.sightings.cameras[split.train], return_inverse=True)[1]
    return CrossCameraPairs(persons, cameras)


if __name__ == "__main__":
    print(run())
