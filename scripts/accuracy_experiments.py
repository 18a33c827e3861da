"""Experiments about figures below the printed ones; writes docs/accuracy.md.

    python scripts/accuracy_experiments.py DATA OUT

DATA holds the datasets, OUT is the folder of `resight reproduce` (features are taken from there).
Nothing measured here enters a table of results: these runs vary what the paper does not state.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from resight import datasets
from resight._files import atomic_write
from resight.datasets.sightings import Sightings
from resight.evaluation.statistics import summarise
from resight.experiments.in_gram_space import measure
from resight.experiments.tables import markdown_table
from resight.features.store import FeatureStore
from resight.plans import Plan
from resight.protocols import for_dataset
from resight.reproduce.paper import paper_tables
from resight.tuning.candidates import CV, CV_FOLDS
from resight.tuning.gram import GramSpace, gram_space

PAGE = Path(__file__).resolve().parents[1] / "docs" / "accuracy.md"
HOG = slice(15 * 3 * 64, 15 * 3 * 64 + 1040)  # of WHOS-dagger
JOBS = os.cpu_count() or 1
QUERIES = 10 * 485  # of CUHK01 single-shot, all splits


def main(data: Path, out: Path) -> None:
    """Run all experiments and write the page."""
    store = FeatureStore(out / "features")
    cuhk01 = datasets.load("cuhk01", root=data)
    parts = [
        INTRODUCTION,
        PRID450S,
        _other_splits(datasets.load("prid450s", root=data), store),
        WHOS,
        _whos_choices(cuhk01, store),
        BASELINES,
        _reductions(cuhk01, store),
        CONCLUSION,
        DIGITS,
        _printed_digits(),
        DIGITS_CONCLUSION,
        CHANGES,
    ]
    with atomic_write(PAGE, "w") as stream:
        stream.write("\n\n".join(parts) + "\n")


def _other_splits(sightings: Sightings, store: FeatureStore) -> str:
    names = "gog+lomo+lomo-dagger"
    space = gram_space(store.ensure(sightings, names))
    plan = Plan("kxqda", "cv", {}, CV, CV_FOLDS)
    rows = [
        [title, *_cells(sightings, protocol, space, plan)]
        for title, protocol in (("published test people", "prid450s"), ("half-half", "half-half"))
    ]
    return markdown_table(("10 splits", "rank 1", "lowest", "highest"), rows)


def _whos_choices(sightings: Sightings, store: FeatureStore) -> str:
    features = np.array(store.ensure(sightings, "whos-dagger").features)
    clipped = features.copy()
    clipped[:, HOG] = np.sqrt(_clip_blocks(features[:, HOG].astype(np.float64) ** 2))
    variants = {
        "as in the tables": features,
        "HOG blocks clipped at 0.25": clipped,
        "without LBP": features[:, : HOG.stop],
        "without HOG and LBP": features[:, : HOG.start],
    }
    rows = [
        [title, *_cells(sightings, "cuhk01-single-shot", GramSpace([values]), Plan("kxqda"))]
        for title, values in variants.items()
    ]
    return markdown_table(("WHOS-dagger", "rank 1", "lowest", "highest"), rows)


def _clip_blocks(hog: np.ndarray) -> np.ndarray:
    """Clip the normalised blocks of 2 x 2 cells x 4 bins and normalise them again."""
    blocks = np.minimum(hog.reshape(len(hog), -1, 16), 0.25)
    norms = np.linalg.norm(blocks, axis=2, keepdims=True)
    return (blocks / np.maximum(norms, 1e-12)).reshape(hog.shape)


def _reductions(sightings: Sightings, store: FeatureStore) -> str:
    space = gram_space(store.ensure(sightings, "lomo"))
    settings: list[tuple[str, dict[str, Any]]] = [
        ("lfda", {}),
        ("lfda", {"pca": 300}),
        ("lfda", {"pca": 300, "n_components": 100}),
        ("mfa", {}),
        ("mfa", {"pca": 300, "n_components": 100}),
        ("lmnn", {}),
        ("lmnn", {"pca": 300}),
        ("lmnn", {"n_neighbors": 2}),
        ("lmnn", {"pca": 200, "n_neighbors": 2}),
        ("lmnn", {"pca": 300, "n_neighbors": 2}),
        ("lmnn", {"max_iter": 20}),
        ("lmnn", {"pca": 600, "max_iter": 20}),
        ("lmnn", {"pca": "full", "n_neighbors": 2, "max_iter": 30}),
    ]
    rows = []
    for name, params in settings:
        words = ", ".join(f"{key}={value}" for key, value in params.items()) or "as in the tables"
        cells = _cells(sightings, "cuhk01-single-shot", space, Plan(name, params=params))
        rows.append([f"{name}, {words}", *cells])
    return markdown_table(("LOMO, CUHK01 single-shot", "rank 1", "lowest", "highest"), rows)


def _printed_digits() -> str:
    """Which printed figures of Table 2 can be means over the queries of the published splits."""
    rows = []
    for row in paper_tables()["table2"].rows:
        possible = [_is_mean(figure, QUERIES) for figure in row.printed.values()]
        cells = " ".join(f"{figure:.2f}" for figure in row.printed.values())
        rows.append([row.title, cells, f"{sum(possible)} of {len(possible)}"])
    return markdown_table(("Table 2", "printed", f"possible with {QUERIES:,} queries"), rows)


def _is_mean(percent: float, queries: int) -> bool:
    """Whether a figure with two decimals is a whole number of found queries."""
    found = round(percent * queries / 100)
    return f"{100 * found / queries:.2f}" == f"{percent:.2f}"


def _cells(sightings: Sightings, protocol: str, space: GramSpace, plan: Plan) -> list[str]:
    splits = for_dataset(sightings, protocol)
    trials = measure(sightings, splits, space, [plan], n_jobs=JOBS)[0]
    values = [trial["ranks"]["rank1"] for trial in trials]
    found = summarise(100.0 * np.asarray(values))
    print(protocol, plan.learner, plan.params, found["mean"], file=sys.stderr)
    spread = f"{found['mean']:.1f} ± {found['sd']:.1f}"
    return [spread, f"{100 * min(values):.1f}", f"{100 * max(values):.1f}"]


INTRODUCTION = """# What the measured tables say

The figures are in [tables.md](tables.md), written by `resight reproduce`; this page, with the
experiments on it, is written by `python scripts/accuracy_experiments.py DATA OUT`. The candidates
of `cv` are those committed before the first measurement; they were never changed.

* **k-XQDA is what the paper says it is.** With the authors' kernel and regulariser (`paper`) the
  rows of CUHK01, the only dataset with the authors' own splits, lie between 0.7 below and 1.3
  above the printed figures for every descriptor, and on GOG agree to the last printed digit.
* **The polynomial kernel of degree 2 with lambda 1e-7 is not a second choice of equal rank**: it
  loses up to 14 points on GOG and on the concatenation, and about nothing on LOMO and WHOS.
* **Choosing on training people (`cv`) pays most where there is least data**: against `paper`, 6
  points on PRID2011, 4 on PRID450S, 1.4 on GRID, 2 on CUHK01 multi-shot, nothing to half a point
  on CUHK01 single-shot. What it chooses there is mostly a linear or wide kernel with a stronger
  regulariser.
* **Normalisation explains most of XQDA's distance on WHOS.** On block-normalised input XQDA gains
  many points there, so the printed gaps of 10 to 15 points between XQDA and k-XQDA shrink to about
  6; on GOG and LOMO the gap of about 4 points stays.
* **k-XQDA is first** among the learners of Table 2 measured here, before KNFST."""

PRID450S = """## PRID450S: below the printed 73.2 by less than its spread

The paper's splits are not public and this copy of the images was resized by its uploader. The
same people in ten other divisions give the same mean, and single divisions reach from the lowest
to the highest figure below: a printed mean of ten others is inside what chance of the splits does.
GOG on CUHK01 is the other figure of `cv` below the printed one (by 0.4): there `paper`, on the
same splits, gives exactly what is printed, so the difference is the price of choosing."""

WHOS = """## WHOS-dagger: below the printed 52.4 by less than one point

The authors' program is not public; LBP, HOG and colours are put together here from their
descriptions. The choice that descriptions and programs disagree on, where HOG blocks are clipped,
and the parts themselves matter as follows (k-XQDA as in `paper`, the authors' splits)."""

BASELINES = """## LFDA, MFA and LMNN: PCA to 100 dimensions was fixed in advance

The paper does not state how these learners' input was reduced. The tables keep what was fixed in
advance, PCA to 100 dimensions and the published numbers of directions; with other reductions:"""

CONCLUSION = """For LFDA and MFA the reduction alone moves the row by as much as it differs from
the printed one, so the printed figures cannot be told apart from another choice of it. The same
holds for LMNN: run to the end on 100 components it is 7.6 below the printed figure, on 600
components and stopped after 20 iterations it is at it, on all components and stopped after 30 it is
1.8 below. (The published program's fixed step
takes a thousand iterations for what L-BFGS does in some tens; where the authors of the paper
stopped is not stated.) ITML and kLFDA are above the printed figures with the inputs fixed in
advance.

MLAPG on CUHK01 is at the printed figures at ranks 10 and 20, and at rank 1 it is 3.4 below them
single-shot and 2.2 multi-shot. It stops at the authors' 300 iterations in every split, but their
number does not explain the difference: in the first split rank 1 was 48.3 after 100 iterations,
48.5 after 150, 48.7 after 250 and 49.5 at the end. Nor does the input: block-normalised
descriptors gave 49.9 there."""

DIGITS = """## Seven rows of Table 2 cannot be means over these splits

A mean over the ten published splits of CUHK01 is a whole number of 4,850 queries, so only about
half of all figures with two decimals can occur. Which printed figures can:"""

DIGITS_CONCLUSION = """The four rows that can be such means (NFST, KNFST, XQDA, k-XQDA) agree
with ours within two points. The seven others come from other divisions or numbers of test people
(all figures of ITML and LMNN end in 0, as if taken from a page that prints one decimal), so a
difference there is one between two experiments. That is where the 3.4 points of MLAPG belong:
here it comes out between KISSME and XQDA, in the paper between XQDA and KNFST."""


CHANGES = """## What was changed after a figure was seen

* MLAPG's row was first run with its features rescaled inside (GRID 11.2 rank 1, `scale=30`) and
  then with `scale=None`, the authors' path, which the inputs fixed in advance call for (GRID
  14.6). Only the second is in the tables. MLAPG's default `scale` was 30, then 4 after a look
  at one PRID450S split, and is now the mean squared distance of raw LOMO; no table uses it.
* LMNN was tried in about thirty settings on test people of two or three CUHK01 splits while its
  low figure was looked into (25 to 43 rank 1). Its settings in the tables were not changed by that,
  except that its tolerance went from 1e-4 to 1e-3 for speed.
* MLAPG's rows are computed in float32 since it was found to halve their time; the figures of GRID
  are the same to the last digit (14.64 ± 2.10)."""


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
