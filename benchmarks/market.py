"""Work of the size of Market-1501 by the command line: memory and time on this machine.

The dataset itself is not here: people are drawn in its layout, with its numbers.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from benchmarks._sampling import Watched, watch_resight
from resight.datasets.synthetic import draw_person

CAMERAS = 6
TRAIN_PEOPLE, TRAIN = 751, 12_936
TEST_PEOPLE, GALLERY_OF_PEOPLE, QUERIES = 750, 13_115, 3_368
DISTRACTORS, JUNK = 2_798, 3_819  # with the people's own: 19,732 in the gallery
DESCRIPTOR = "lomo-dagger"
LANDMARKS = 1024
LIMIT = 20  # GB


def run() -> str:
    """Draw, extract, train and evaluate; return Markdown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        count = draw_market(folder / "market1501")
        drawing = time.perf_counter() - start
        words = ["market1501", "--root", ".", "--descriptor", DESCRIPTOR, "--jobs", "2"]
        extracted = watch_resight(["extract", *words, "--store", "store"], folder)
        words += ["--store", "store"]
        stages = {
            f"extract, {DESCRIPTOR}": extracted,
            "evaluate, exact k-XQDA": watch_resight(
                ["evaluate", *words, "--learner", "kxqda:cv"], folder
            ),
            f"evaluate, {LANDMARKS:,} landmarks": watch_resight(
                [
                    *("evaluate", *words, "--learner", "kxqda:cv"),
                    *("--param", f"kxqda.landmarks={LANDMARKS}"),
                ],
                folder,
            ),
            f"fit, {LANDMARKS:,} landmarks": watch_resight(
                ["fit", *words, "--landmarks", str(LANDMARKS), "--out", "model"], folder
            ),
        }
    lines = _page(stages, count, drawing)
    worst = max(stage.resident for stage in stages.values())
    if worst > LIMIT:
        raise RuntimeError("\n".join([*lines, f"{worst:.1f} GB is more than {LIMIT}"]))
    return "\n".join(lines)


def _page(stages: dict[str, Watched], count: int, drawing: float) -> list[str]:
    lines = [
        f"{count:,} pictures drawn in {drawing:.0f} s: {TRAIN:,} of {TRAIN_PEOPLE} people to "
        f"train, {QUERIES:,} queries, {GALLERY_OF_PEOPLE + DISTRACTORS + JUNK:,} in the gallery "
        f"({DISTRACTORS:,} distractors, {JUNK:,} junk), {CAMERAS} cameras; commands use "
        f"{os.cpu_count()} cores; sightings of the query's person by its own camera and junk are "
        "ignored. Memory is that of all processes together, sampled: resident with mapped feature "
        "files, and without.",
        "",
        "| command | clock | peak memory | without files | rank 1 | mAP | chosen |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, stage in stages.items():
        cells = "| - | - | - |"
        if "runs" in stage.document:
            found = stage.document["runs"][0]
            summary = found["summary"]
            chosen = found["trials"][0]["chosen"]
            cells = (
                f"| {summary['rank1']['mean']:.1f} | {summary['map']['mean']:.1f} "
                f"| {chosen.get('kernel', 'rbf')}, {chosen['reg_form']} {chosen['reg']:g} |"
            )
        lines.append(f"| {name} | {stage.cost} {cells}")
    lines += ["", f"Allowed: {LIMIT} GB. Times include start-up, reading, fit and ranking."]
    return lines


def draw_market(folder: Path) -> int:
    """Draw train, query and gallery in the layout of Market-1501; return how many pictures."""
    train = sightings_of(TRAIN_PEOPLE, CAMERAS, TRAIN, seed=0)
    seen = sightings_of(TEST_PEOPLE, CAMERAS, GALLERY_OF_PEOPLE, seed=1, n_cells=QUERIES)
    cells = np.unique(seen[:, :2], axis=0)
    queries = np.column_stack([cells, np.full(len(cells), 900)])
    rng = np.random.default_rng(2)
    strangers = np.column_stack(
        [np.arange(DISTRACTORS + JUNK), rng.integers(0, CAMERAS, DISTRACTORS + JUNK)]
    )
    tasks = [
        *(("bounding_box_train", f"{p + 1:04d}", p, c, s) for p, c, s in train.tolist()),
        *(_tested("query", *row) for row in queries.tolist()),
        *(_tested("bounding_box_test", *row) for row in seen.tolist()),
        *(
            ("bounding_box_test", "0000" if i < DISTRACTORS else "-1", 100_000 + i, c, i)
            for i, c in strangers.tolist()
        ),
    ]
    for name in ("bounding_box_train", "query", "bounding_box_test"):
        (folder / name).mkdir(parents=True)
    cuts = [tasks[start : start + 256] for start in range(0, len(tasks), 256)]
    Parallel(n_jobs=-1)(delayed(_write)(folder, cut) for cut in cuts)
    return len(tasks)


def _tested(role: str, person: int, camera: int, shot: int) -> tuple[str, str, int, int, int]:
    return role, f"{person + TRAIN_PEOPLE + 1:04d}", 10_000 + person, camera, shot


def _write(folder: Path, tasks: list[tuple[str, str, int, int, int]]) -> None:
    for role, label, person, camera, shot in tasks:
        image = draw_person(person, camera, shot=shot)
        _, coded = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
        file = folder / role / f"{label}_c{camera + 1}s1_{shot:06d}_00.jpg"
        file.write_bytes(coded.tobytes())


def sightings_of(
    n_people: int, n_cameras: int, total: int, seed: int, n_cells: int | None = None
) -> NDArray[np.intp]:
    """Draw who is seen by which camera how often: rows (person, camera, shot), `total` of them.

    Everybody is seen by at least two cameras; `n_cells` is the number of pairs of a person and
    a camera that sees them, by default three quarters of all.
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random((n_people, n_cameras)), axis=1)
    first = np.column_stack([np.repeat(np.arange(n_people), 2), order[:, :2].ravel()])
    rest = np.column_stack([np.repeat(np.arange(n_people), n_cameras - 2), order[:, 2:].ravel()])
    wanted = (3 * n_people * n_cameras // 4 if n_cells is None else n_cells) - len(first)
    cells = np.concatenate([first, rest[rng.permutation(len(rest))[:wanted]]])
    shares = rng.gamma(2.0, size=len(cells))  # some are seen often, most a few times
    more = rng.multinomial(total - len(cells), shares / shares.sum())
    counts = 1 + more
    rows = np.repeat(cells, counts, axis=0)
    shots = np.concatenate([np.arange(count) for count in counts])
    return np.column_stack([rows, shots])


if __name__ == "__main__":
    print(run())
