"""Measure on research images how true stated probabilities are; write docs/confidence_measured.md.

    python scripts/confidence.py --data ../shared/data --out OUT

Everything is fixed here, before any measurement: GOG, k-XQDA with its default parameters, the
published splits, calibration from each split's training people only.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from resight import datasets
from resight._files import atomic_write, write_json
from resight.experiments.confidence import confidence
from resight.experiments.tables import markdown_table
from resight.features.store import FeatureStore
from resight.plans import Plan
from resight.protocols import for_dataset
from resight.tuning.gram import gram_space

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "confidence_measured.md"
PICTURE = ROOT / "docs" / "images" / "reliability.svg"
DESCRIPTOR, LEARNER = "gog", "kxqda"
MEASURED = (("cuhk01", "cuhk01-single-shot"), ("grid", None))


def measure(data: Path, out: Path, jobs: int) -> dict[str, Any]:
    """Measure both datasets; features come from ``out/features``."""
    found = {}
    for name, protocol in MEASURED:
        sightings = datasets.load(name, root=data)
        features = FeatureStore(out / "features").ensure(sightings, DESCRIPTOR)
        rules = for_dataset(sightings, protocol)
        space = gram_space(features)
        found[name] = confidence(sightings, rules, space, Plan(LEARNER), n_jobs=jobs)
        found[name]["protocol"] = rules.summary(sightings)
    return found


def page(found: dict[str, Any]) -> str:
    """Return the page of what was found, targets judged by the figures themselves."""
    cuhk01, grid = found["cuhk01"], found["grid"]
    first, gone = cuhk01["first_match"], grid["not_in_gallery"]
    lowest, highest = min(gone["false_accepts_of_splits"]), max(gone["false_accepts_of_splits"])
    reached = [
        [
            "CUHK01: expected calibration error",
            f"{first['ece']:.3f}",
            "at most 0.05",
            _verdict(first["ece"] <= 0.05),
        ],
        [
            "CUHK01: log-loss",
            f"{first['log_loss']:.3f}",
            f"below {first['log_loss_constant']:.3f}, the best constant",
            _verdict(first["log_loss"] < first["log_loss_constant"]),
        ],
        [
            "GRID: realised false-accept rate",
            f"{100 * gone['false_accepts']:.1f}%",
            "5% to 15%, stated 10%",
            _verdict(0.05 <= gone["false_accepts"] <= 0.15),
        ],
        [
            "GRID: detection and identification rate",
            f"{100 * gone['identified']:.1f}%",
            "printed",
            "-",
        ],
    ]
    parts = [
        "# Stated probabilities, measured",
        "Written by `python scripts/confidence.py --data DATA --out OUT`; what the figures mean is "
        "in [confidence.md](confidence.md). GOG, k-XQDA with its default parameters, published "
        "splits. In each split metric and calibration are learned from that split's training "
        "people alone; distractors are in the gallery only.",
        markdown_table(("measured", "figure", "target", "reached"), reached),
        "![Reliability diagram](images/reliability.svg)",
        "## All figures",
        _figures(found),
        f"On GRID {gone['missing']} of {gone['missing'] + gone['queries']} queries had their right "
        f"sighting taken out of the gallery of {grid['protocol']['gallery']} (half of each split, "
        f"chosen by digests). Single splits have realised false-accept rates from "
        f"{100 * lowest:.0f}% to {100 * highest:.0f}%: their calibration knows only "
        f"{grid['protocol']['train_people']} people. Rows with half missing state probabilities "
        "with that prior.",
    ]
    return "\n\n".join(parts) + "\n"


def _figures(found: dict[str, Any]) -> str:
    rows = []
    for name, title in (("cuhk01", "CUHK01 single-shot"), ("grid", "GRID")):
        for key, words in (("first_match", "all there"), ("half_missing", "half missing")):
            one = found[name][key]
            rows.append(
                [
                    f"{title}, {words}",
                    str(one["queries"]),
                    f"{100 * one['right']:.1f}%",
                    f"{one['ece']:.3f}",
                    f"{one['log_loss']:.3f} ({one['log_loss_constant']:.3f})",
                    f"{one['brier']:.3f} ({one['brier_constant']:.3f})",
                    f"{100 * found[name]['not_in_gallery']['identified']:.1f}%"
                    if key == "half_missing"
                    else "-",
                    f"{100 * found[name]['not_in_gallery']['false_accepts']:.1f}%"
                    if key == "half_missing"
                    else "-",
                ]
            )
    headings = (
        "probability of the first match",
        "queries",
        "right",
        "ECE",
        "log-loss (constant)",
        "Brier (constant)",
        "DIR",
        "FAR",
    )
    return markdown_table(headings, rows)


def _verdict(reached: bool) -> str:
    return "yes" if reached else "**no**"


def draw(found: dict[str, Any]) -> str:
    """Return the reliability diagrams of both datasets as an SVG picture."""
    from resight.report.displays import ReliabilityDisplay

    runs = [
        {"title": title, "confidence": found[name]}
        for name, title in (("cuhk01", "CUHK01 single-shot"), ("grid", "GRID"))
    ]
    display = ReliabilityDisplay.from_document({"runs": runs})
    return "" if display is None else display.svg()


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the datasets")
    parser.add_argument("--out", type=Path, required=True, help="as of resight reproduce")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    found = measure(given.data, given.out, given.jobs)
    write_json(given.out / "confidence.json", found)
    for file, text in ((PAGE, page(found)), (PICTURE, draw(found))):
        with atomic_write(file, "w") as stream:
            stream.write(text)
    print(page(found))


if __name__ == "__main__":
    main()
