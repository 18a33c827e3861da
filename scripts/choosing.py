"""Measure the recipe against fixed choices with few and many labelled people: docs/choosing.md.

    python scripts/choosing.py DATA OUT [SET ...]

DATA holds the datasets, OUT/features their descriptors, as `resight reproduce` keeps them. For each
split one order of its training people is drawn; sizes are nested. Every finished cell (set, split,
size, method) is kept in OUT/choosing, so that an interrupted run goes on, several can run side by
side on different sets, and the page can be written at any time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from resight import datasets
from resight._files import digest_of, write_json
from resight.datasets.sightings import Sightings, seen_by_two
from resight.evaluation.statistics import compare_paired
from resight.experiments.in_gram_space import SplitRunner
from resight.experiments.tables import markdown_table
from resight.features.store import FeatureStore
from resight.plans import Plan
from resight.protocols import Protocol, Split, for_dataset
from resight.tuning.candidates import CV, CV_FOLDS
from resight.tuning.gram import GramSpace, gram_space

DESCRIPTORS = "gog+lomo-dagger+whos-dagger"
SETS = {"grid": "grid", "prid2011": "prid2011", "prid450s": "prid450s"}
SETS["cuhk01-single-shot"] = "cuhk01"
SIZES = (10, 25, 50, 100, 200)
RECIPE = "recipe"
PLANS = {
    "Euclidean": Plan("euclidean"),
    "XQDA": Plan("xqda"),
    "KNFST": Plan("knfst"),
    "k-XQDA": Plan("kxqda", "paper"),
    "`kxqda:cv`": Plan("kxqda", "cv", {}, CV, CV_FOLDS),
    RECIPE: Plan("auto"),
}
PAGE = Path(__file__).parents[1] / "docs" / "choosing.md"


def main(data: Path, out: Path, names: list[str]) -> None:
    """Measure what is missing and write the page from everything that is there."""
    start = time.perf_counter()
    with threadpool_limits(1):
        for name in names:
            Bench(data, out, name).run()
    pages = [Bench(data, out, name).section() for name in SETS]
    PAGE.write_text(introduction() + "\n\n".join(filter(None, pages)) + "\n", "utf-8")
    print(f"{time.perf_counter() - start:.0f} s in this call")


class Bench:
    """One dataset: its splits, its Gram matrices and its finished cells."""

    def __init__(self, data: Path, out: Path, name: str) -> None:
        self.name, self.data, self.out = name, data, out
        self.folder = out / "choosing" / name
        self._sightings: Sightings | None = None

    @property
    def sightings(self) -> Sightings:
        """The dataset, read once."""
        if self._sightings is None:
            self._sightings = datasets.load(SETS[self.name], root=self.data)
        return self._sightings

    @property
    def protocol(self) -> Protocol:
        """Its published splits."""
        return for_dataset(self.sightings, self.name)

    def run(self) -> None:
        """Measure all cells that are missing, small sizes of all splits first."""
        jobs = [job for job in self._jobs() if not self._file(job[0], job[2]).is_file()]
        if not jobs:
            return
        store = FeatureStore(self.out / "features")
        plain, mirrored = (
            gram_space(store.ensure(self.sightings, DESCRIPTORS, mirror))
            for mirror in (False, True)
        )
        for number, split, people in jobs:
            self._measure(number, split, people, plain, mirrored)

    def _jobs(self) -> Iterator[tuple[int, Split, int]]:
        splits = [(n, split, self._people(split)) for n, split in enumerate(self.protocol.splits)]
        everybody = len(splits[0][2])
        for size in (*(size for size in SIZES if size < everybody), everybody):
            for number, split, people in splits:
                order = sorted(people, key=lambda person: digest_of(f"{number}", person))
                learned = np.isin(self.sightings.persons[split.train], order[:size])
                yield number, replace(split, train=split.train[learned]), size

    def _people(self, split: Split) -> list[str]:
        persons, cameras = self.sightings.persons, self.sightings.cameras
        found: list[str] = seen_by_two(persons[split.train], cameras[split.train]).tolist()
        return found

    def _measure(
        self, number: int, split: Split, people: int, plain: GramSpace, mirrored: GramSpace
    ) -> None:
        """Measure every method on one cell and keep it."""
        cell = {}
        for method, plan in PLANS.items():
            start = time.perf_counter()
            space = mirrored if method == RECIPE else None
            trial = SplitRunner(self.sightings, self.protocol, plain, split, space).measure([plan])[
                0
            ]
            seconds = time.perf_counter() - start
            cell[method] = {"rank1": 100.0 * trial.rank(1), "seconds": seconds}
        write_json(self._file(number, people), {"test": len(split.query), "methods": cell})
        found = ", ".join(f"{method} {one['rank1']:.1f}" for method, one in cell.items())
        print(f"{self.name} split {number}, {people} people: {found}", flush=True)

    def _file(self, number: int, people: int) -> Path:
        return self.folder / f"{people}-{number}.json"

    def section(self) -> str:
        """Return the table and the differences of one dataset, from finished cells."""
        cells: dict[int, list[dict[str, dict[str, float]]]] = {}
        files = sorted(self.folder.glob("*.json"), key=lambda file: file.stem.split("-")[::-1])
        for file in files:
            people = int(file.stem.split("-")[0])
            cells.setdefault(people, []).append(json.loads(file.read_text("utf-8"))["methods"])
        whole = {people: of for people, of in sorted(cells.items()) if len(of) > 1}
        if not whole:
            return ""
        seconds = sum(
            one["seconds"] for of in cells.values() for cell in of for one in cell.values()
        )
        return "\n\n".join(
            [
                f"## {self.name}",
                _figures(whole),
                "Recipe minus each other method, with the corrected paired 95% interval:",
                _differences(whole, self._tested()),
                _best(whole),
                f"Measured in {seconds:.0f} s.",
            ]
        )

    def _tested(self) -> float:
        """Part of the people of a split that is tested."""
        split = self.protocol.splits[0]
        tested = len(np.unique(self.sightings.persons[split.query]))
        return tested / (tested + len(self._people(split)))


def _column(cells: list[dict[str, dict[str, float]]], method: str) -> np.ndarray:
    return np.array([cell[method]["rank1"] for cell in cells])


def _figures(whole: dict[int, list[dict[str, dict[str, float]]]]) -> str:
    rows = [
        [f"{people}", f"{len(of)}", *(f"{_column(of, method).mean():.1f}" for method in PLANS)]
        for people, of in whole.items()
    ]
    return markdown_table(("people", "splits", *PLANS), rows)


def _differences(whole: dict[int, list[dict[str, dict[str, float]]]], tested: float) -> str:
    rows = []
    for people, of in whole.items():
        row = [f"{people}"]
        for method in PLANS:
            if method != RECIPE:
                found = compare_paired(_column(of, RECIPE), _column(of, method), tested)
                low, high = found.ci95
                row.append(f"{found.mean_difference:+.1f} ({low:+.1f} to {high:+.1f})")
        rows.append(row)
    return markdown_table(("people", *(name for name in PLANS if name != RECIPE)), rows)


def _best(whole: dict[int, list[dict[str, dict[str, float]]]]) -> str:
    """Compare means over sizes with the best single other method."""
    means = {
        method: float(np.mean([_column(of, method).mean() for of in whole.values()]))
        for method in PLANS
    }
    others = {method: mean for method, mean in means.items() if method != RECIPE}
    best = max(others, key=lambda method: others[method])
    return (
        f"Averaged over sizes: recipe {means[RECIPE]:.1f}, the best single other method, {best}, "
        f"{others[best]:.1f} ({means[RECIPE] - others[best]:+.1f})."
    )


def introduction() -> str:
    """Say what the page shows."""
    return f"""# Choosing with few and many people

Rank 1 in percent against the number of labelled people, written by `python scripts/choosing.py`:
means over the splits of each protocol, one draw of training people per split, the same test people
at every size. All methods get {DESCRIPTORS}, block-normalised; the recipe is `--learner auto`
([auto.md](auto.md)), which may also average over mirror images. Intervals are of the corrected
resampled t test, which allows for splits that share people; its ratio of tested to training people
is that of the whole split. The choice was changed five times after figures for 10 people had been
seen ([auto.md](auto.md)), so the row of 10 people is not an independent measurement. With fewer
than 16 people the recipe is Euclidean.

"""


if __name__ == "__main__":
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= set(SETS):
        sys.exit(f"usage: python scripts/choosing.py DATA OUT [{' | '.join(SETS)}] ...")
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or list(SETS))
