"""A whole evaluation of Market-1501's size from finished features, against its fit alone.

python -m benchmarks.evaluate_large [--size 1.0] [--way exact,landmarks] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import csv
import pstats
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.machine import in_fresh_process, peak_gigabytes
from benchmarks.market import (
    CAMERAS,
    DISTRACTORS,
    GALLERY_OF_PEOPLE,
    LANDMARKS,
    QUERIES,
    TEST_PEOPLE,
    TRAIN,
    TRAIN_PEOPLE,
    sightings_of,
)

WIDTH = 26_960  # features of LOMO-dagger
TRAITS = 32
ALLOWED = 2.0  # times the fit
WAYS = ("exact", "landmarks")
# Landmarks need a lambda of their own; folds of the exact model would take an hour.
LEARNERS = {"exact": "kxqda", "landmarks": "kxqda:cv"}


class Cost(NamedTuple):
    """What one call took."""

    seconds: float  # of the processor
    gigabytes: float  # at most
    rank1: float | None = None
    map: float | None = None


def run(size: float = 1.0, ways: tuple[str, ...] = WAYS, profile: bool = False) -> str:
    """Draw features, fit and evaluate each in a fresh process; return a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counts = in_fresh_process(draw, folder, size)
        lines = [
            f"{counts['train']:,} training sightings of {round(size * TRAIN_PEOPLE)} people by "
            f"{CAMERAS} cameras, {counts['query']:,} queries in a gallery of "
            f"{counts['gallery']:,}; {WIDTH:,} drawn features of float32 in a file; processor "
            "seconds of one thread, each in a fresh process. The fit is that of the evaluation: "
            "normalisation, kernel and metric, with landmarks (`kxqda:cv`) the choice of lambda "
            "too, from the same file.",
            "",
            "| k-XQDA | fit | evaluate | times the fit | rank 1, % | mAP, % | peak memory |",
            "|---|---|---|---|---|---|---|",
        ]
        print("\n".join(lines), flush=True)
        for way in ways:
            params = {} if way == "exact" else {"landmarks": max(64, round(size * LANDMARKS))}
            fit = in_fresh_process(_fit, folder, LEARNERS[way], params)
            whole = in_fresh_process(_evaluate, folder, LEARNERS[way], params, profile)
            title = way if way == "exact" else f"{params['landmarks']:,} landmark features"
            row = (
                f"| {title} | {fit.seconds:.0f} s | {whole.seconds:.0f} s "
                f"| {whole.seconds / fit.seconds:.2f} | {whole.rank1:.1f} | {whole.map:.1f} "
                f"| {whole.gigabytes:.1f} GB |"
            )
            print(row, flush=True)
            lines.append(row)
    return "\n".join([*lines, "", f"Allowed: {ALLOWED:g} times the fit."])


def draw(folder: Path, size: float) -> dict[str, int]:
    """Write features and labels of a town, `size` times that of Market-1501."""
    people, tested = round(size * TRAIN_PEOPLE), round(size * TEST_PEOPLE)
    train = sightings_of(people, CAMERAS, round(size * TRAIN), seed=0)
    held = round(size * GALLERY_OF_PEOPLE)
    gallery = sightings_of(tested, CAMERAS, held, seed=1, n_cells=round(size * QUERIES))
    query = np.unique(gallery[:, :2], axis=0)
    rng = np.random.default_rng(2)
    n_strangers = round(size * DISTRACTORS)
    strangers = np.column_stack(
        [np.arange(n_strangers) + people + tested, rng.integers(0, CAMERAS, n_strangers)]
    )
    others = np.array([people, 0])  # nobody of those who train
    parts = {
        "train": train[:, :2],
        "query": query + others,
        "gallery": gallery[:, :2] + others,
        "distractor": strangers,
    }
    rows = np.concatenate(list(parts.values()))
    roles = np.repeat(list(parts), [len(part) for part in parts.values()])
    with (folder / "town.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("person", "camera", "role"))
        labels = zip(rows.tolist(), roles.tolist(), strict=True)
        writer.writerows((person, f"c{camera}", role) for (person, camera), role in labels)
    _write_features(folder / "town.npy", rows, rng)
    counts = {name: len(part) for name, part in parts.items()}
    return {**counts, "gallery": counts["gallery"] + counts["distractor"]}


def _write_features(file: Path, rows: NDArray[np.intp], rng: np.random.Generator) -> None:
    """Traits of people, changed by camera and chance, seen through noise."""
    looks = rng.normal(size=(TRAITS, WIDTH)).astype(np.float32)
    who = rng.normal(size=(int(rows[:, 0].max()) + 1, TRAITS))
    shifts = rng.normal(size=(CAMERAS, TRAITS)) / 2
    table = np.lib.format.open_memmap(file, "w+", np.float32, (len(rows), WIDTH))
    for start in range(0, len(rows), 2048):
        persons, cameras = rows[start : start + 2048].T
        traits = who[persons] + shifts[cameras]
        traits += 0.9 * rng.normal(size=traits.shape)
        noise = rng.standard_normal((len(persons), WIDTH), np.float32)
        table[start : start + 2048] = traits.astype(np.float32) @ looks + 10 * noise
    table.flush()


def _fit(folder: Path, learner: str, params: dict[str, Any]) -> Cost:
    from resight.features.vectors import load_vectors
    from resight.models.fitting import fit_plan
    from resight.models.training import Training
    from resight.plans import plan_of

    features, sightings = load_vectors(folder / "town.npy")
    train = np.flatnonzero(sightings.roles == "train")
    training = Training([features], train, sightings.select(train))
    with threadpool_limits(1):
        start = time.process_time()
        fit_plan(plan_of(learner, params), training, scratch=folder)
        return Cost(time.process_time() - start, peak_gigabytes())


def _evaluate(folder: Path, learner: str, params: dict[str, Any], profile: bool) -> Cost:
    import resight
    from resight.experiments import out_of_core

    out_of_core.GRAM_LIMIT = 0  # smaller sizes are measured from the features too
    watch = cProfile.Profile() if profile else None
    with threadpool_limits(1):
        start = time.process_time()
        if watch is not None:
            watch.enable()
        result = resight.evaluate(
            features=folder / "town.npy",
            learner=learner,
            params={"kxqda": params},
            store=folder / "store",
            out=folder / "result",
            jobs=1,
        )
        if watch is not None:
            watch.disable()
            pstats.Stats(watch).sort_stats("cumulative").print_stats(60)
        seconds = time.process_time() - start
    found: Any = result.document["runs"]
    summary = found[0]["summary"]
    return Cost(seconds, peak_gigabytes(), summary["rank1"]["mean"], summary["map"]["mean"])


def main() -> None:
    """Print the table of one size, which the page does not keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=1.0, help="times Market-1501")
    parser.add_argument("--way", default=",".join(WAYS), help="exact, landmarks or both")
    parser.add_argument("--profile", action="store_true", help="show where evaluate spends it")
    given = parser.parse_args()
    run(given.size, tuple(given.way.split(",")), given.profile)


if __name__ == "__main__":
    main()
