"""Groups of unknown sightings on synthetic cameras, and what they save an operator.

100 unknown people before four cameras, three tracks of two crops each; the model was fitted on 60
other people. Pairwise precision and recall of the groups are those of pairs of sightings. The
operator knows the truth and labels everybody. With groups: one click accepts a group, one drops a
sighting of somebody else, one names the person (and so joins it to an earlier group); what is in no
group, and what was dropped, is left to search as in 0.1. With 0.1's proposals: a proposed sighting
is opened, each right one of the 24 results in other cameras is confirmed, the first one rejected
where it is wrong, and the person is named, each with a click, until nobody is unknown. Both end
with a precision of 1.

The thresholds were chosen on drawings 100 and 101. ``python -m benchmarks.grouping DATA`` groups
the test people of PRID450S instead, by XQDA of GOG and LOMO-dagger, and prints the same columns.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from resight import KXQDA, XQDA
from resight.datasets import load
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery
from resight.gallery.adding import Described
from resight.gallery.groups import find_groups
from resight.gallery.view import View
from resight.models.calibrating import add_calibration
from resight.models.model import Model
from resight.protocols import for_dataset

DESCRIPTOR = "whos-star"
TRAINED, UNKNOWN, CAMERAS, TRACKS, CROPS, LOOKED_AT = 60, 100, 4, 3, 2, 24
FRESH = (300, 301, 302)


def run() -> str:
    """Measure each drawing, with calibration and without, and write a table."""
    lines = [
        "| drawing | rule | groups | precision | recall | clicks | clicks with 0.1 | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for seed in FRESH:
        for rule, row in measure(seed).items():
            lines.append(f"| {seed} | {rule} | {row} |")
    return "\n".join(lines) + "\n"


def measure(seed: int) -> dict[str, str]:
    """Group one drawing by evidence and by distance."""
    with tempfile.TemporaryDirectory() as folder:
        n_people = TRAINED + UNKNOWN
        drawn = draw_cameras(Path(folder) / "cameras", n_people, CAMERAS, TRACKS * CROPS, seed=seed)
        shot = np.array([int(Path(path).stem) for path in drawn.paths.tolist()])
        tracks = [
            f"{p}-{(s - shot.min()) // CROPS}" for p, s in zip(drawn.persons, shot, strict=True)
        ]
        known = np.isin(drawn.persons, np.unique(drawn.persons)[:TRAINED])
        model = Model((DESCRIPTOR,), KXQDA())
        return grouped(replace(drawn, sequences=np.array(tracks)), known, model, Path(folder))


def grouped(sightings: Sightings, known: np.ndarray, model: Model, folder: Path) -> dict[str, str]:
    """Fit on the people of some rows and group the others, by evidence and by distance."""
    features = model.describe(sightings.files())
    persons, cameras = sightings.persons, sightings.cameras
    model.fit(features[known], persons[known], cameras[known])
    uncalibrated = model.calibration
    add_calibration(model, features[known], persons[known], cameras[known])
    times = np.arange(len(sightings), dtype=float)  # tells which row a sighting is
    given = replace(sightings, persons=np.full(len(sightings), ""), times=times).select(~known)
    gallery = Gallery.create(folder / "gallery", model)
    gallery.add(given, described=Described(features[~known], model.descriptor_fingerprint))
    view = gallery.view
    truth = persons[view.table.times.astype(int)]
    before = clicks_of_search(view, truth)
    rows = {"evidence": _row(view, truth, before)}
    view.model.calibration = uncalibrated
    rows["distance"] = _row(view, truth, before)
    gallery.close()
    return rows


def of_prid450s(data: Path) -> dict[str, str]:
    """Group the test people of the first split of PRID450S, one picture for each camera."""
    sightings = load("prid450s", root=data)
    known = np.zeros(len(sightings), bool)
    known[for_dataset(sightings, "prid450s").splits[0].train] = True
    with tempfile.TemporaryDirectory() as folder:
        return grouped(sightings, known, Model(("gog", "lomo-dagger"), XQDA()), Path(folder))


def _row(view: View, truth: np.ndarray, before: int) -> str:
    groups = [[view.rows[key] for key in one.sightings] for one in find_groups(view)]
    precision, recall = pairs(groups, truth)
    after = clicks_of_groups(view, groups, truth)
    return (
        f"{len(groups)} | {100 * precision:.1f}% | {100 * recall:.1f}% | {after} | {before} | "
        f"{before / after:.1f}"
    )


def pairs(groups: list[list[int]], truth: np.ndarray) -> tuple[float, float]:
    """Return precision and recall of the pairs of sightings that groups join."""

    def count(sizes: list[int]) -> int:
        return sum(n * (n - 1) // 2 for n in sizes)

    joined = count([len(group) for group in groups])
    right = sum(count(list(Counter(truth[group].tolist()).values())) for group in groups)
    return right / max(1, joined), right / count(list(Counter(truth.tolist()).values()))


def clicks_of_groups(view: View, groups: list[list[int]], truth: np.ndarray) -> int:
    """Accept every group as the person most of it shows; search for the rest."""
    clicks, labelled = 0, np.zeros(len(truth), bool)
    named: set[str] = set()
    for group in groups:
        (person, right), *_ = Counter(truth[group].tolist()).most_common()
        clicks += 2 + len(group) - right
        named.add(person)
        labelled[[row for row in group if truth[row] == person]] = True
    return clicks + clicks_of_search(view, truth, labelled, named)


def clicks_of_search(
    view: View, truth: np.ndarray, labelled: np.ndarray | None = None, named: set[str] | None = None
) -> int:
    """Open sightings that are unknown, confirm what is right among the results, name the person."""
    assert view.index is not None
    done = np.zeros(len(truth), bool) if labelled is None else labelled.copy()
    known, clicks = set() if named is None else set(named), 0
    for row in range(len(truth)):
        if done[row]:
            continue
        [distances] = view.index.distances(view.index.embeddings[[row]])
        elsewhere = np.flatnonzero(view.table.cameras != view.table.cameras[row])
        shown = elsewhere[np.argsort(distances[elsewhere], kind="stable")[:LOOKED_AT]]
        right = shown[truth[shown] == truth[row]]
        new = right[~done[right]]
        clicks += 1 + int(truth[shown[0]] != truth[row])
        # One click joins the query to somebody known, or each unknown result to the query.
        clicks += len(new) + int(len(new) < len(right))
        if truth[row] not in known:
            clicks += 1
            known.add(str(truth[row]))
        elif len(new) == len(right):
            clicks += 1  # found nobody known: named as an earlier person, which merges them
        done[right] = done[row] = True
    return clicks


if __name__ == "__main__":
    for rule, row in of_prid450s(Path(sys.argv[1])).items():
        print(f"| PRID450S | {rule} | {row} |")
