"""Measure variants of the descriptors on real images and write them into docs/descriptors.md.

    python scripts/variants.py --data DIR --out OUT [--dataset grid,prid2011]

Fixed before the first run: each variant alone with XQDA beside the descriptor it varies, and the
recipe with all variants added to its three descriptors beside the recipe without; the choice
weighs them on the training people of each split. Finished splits are kept in OUT.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from resight._files import atomic_write
from resight.evaluation.statistics import compare_paired
from resight.experiments.tables import markdown_table
from resight.plans import Plan
from resight.protocols import for_dataset
from resight.registry import AUTO
from resight.reproduce.measuring import Bench
from resight.reproduce.paper import Job

PAGE = Path(__file__).resolve().parents[1] / "docs" / "descriptors.md"
BEGIN, END = "<!-- written by scripts/variants.py -->\n", "<!-- end of the table -->"
PROTOCOLS = {
    "grid": "grid",
    "prid2011": "prid2011",
    "prid450s": "prid450s",
    "cuhk01": "cuhk01-single-shot",
}
VARIANTS = {
    "gog": ("gog-norm", "gog-grey", "gog-retinex"),
    "lomo-dagger": ("lomo-dagger-grey",),
    "whos-dagger": ("whos-dagger-grey", "whos-dagger-retinex"),
}
RECIPE = Plan(AUTO, "auto", {"mirrored": True})


def measured(bench: Bench, dataset: str) -> list[list[str]]:
    """Return the rows of one dataset."""
    rows = []
    for usual, variants in VARIANTS.items():
        for variant in variants:
            compared = ((usual,), (variant,), Plan("xqda"))
            rows.append([dataset, "XQDA", usual, variant, *_figures(bench, dataset, *compared)])
    base = tuple(VARIANTS)
    every = base + tuple(name for names in VARIANTS.values() for name in names)
    figures = _figures(bench, dataset, base, every, RECIPE)
    return [*rows, [dataset, "recipe", "its three", "with all six variants", *figures]]


def _figures(
    bench: Bench, dataset: str, usual: tuple[str, ...], other: tuple[str, ...], plan: Plan
) -> list[str]:
    """Return rank 1 without and with a variant, and the paired difference."""
    protocol = PROTOCOLS[dataset]
    before, after = (bench.measure(Job(dataset, protocol, one, plan)) for one in (usual, other))
    split = for_dataset(bench.sightings(dataset), protocol).splits[0]
    persons = bench.sightings(dataset).persons
    tested, trained = (len(np.unique(persons[rows])) for rows in (split.query, split.train))
    gain = compare_paired(_rank1(after), _rank1(before), tested / (tested + trained))
    low, high = gain.ci95
    means = (f"{one['summary']['rank1']['mean']:.1f}" for one in (before, after))
    return [*means, f"{gain.mean_difference:+.1f} ({low:+.1f} to {high:+.1f})"]


def _rank1(figures: dict[str, Any]) -> list[float]:
    return [trial["rank1"] for trial in figures["trials"]]


def main() -> None:
    """Measure the datasets that are named and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the datasets")
    parser.add_argument("--out", type=Path, required=True, help="where runs are kept")
    parser.add_argument("--dataset", default=",".join(PROTOCOLS), help="some of them")
    given = parser.parse_args()
    bench = Bench(given.data, given.out, 1, None, lambda text: print(text, flush=True))
    rows = [row for name in given.dataset.split(",") for row in measured(bench, name)]
    headings = ("dataset", "learner", "descriptors", "instead", "rank 1", "then", "difference")
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    with atomic_write(PAGE, "w") as stream:
        text = markdown_table(headings, rows)
        stream.write(before + BEGIN + text + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
