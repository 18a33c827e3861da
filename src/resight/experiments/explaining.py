"""Explain a few rankings of an evaluation: first matches that were right, and some that were wrong.

The model is fitted once more on the first split, because rankings come from Gram matrices, which
know nothing of single features.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight._files import write_json
from resight.datasets.sightings import Sightings
from resight.experiments.results import Run
from resight.explanation.explainer import N_PAIRS, Explainer
from resight.models.model import Model
from resight.registry import AUTO

if TYPE_CHECKING:
    from resight.experiments.evaluate import Evaluation

SCHEMA = "resight.explanations/1"
FILE = "explanations.json"
_MOST_TRAINING_ROWS = 4000  # beyond that one more fit would take long
_SEED = 0

Rows = NDArray[np.intp]


def explain_matches(
    evaluation: Evaluation, runs: Sequence[Run], n_matches: int = 4, mirror: bool = False
) -> dict[str, Any] | None:
    """Explain first matches of the first split, half of them right if there are as many.

    Returns a document of resight.explanations/1: the run's title and, for each match, paths, people
    and a resight.explanation/1 document. None where no run can be explained: those that choose
    their whole setting, take minutes to fit, or learn from more than 4,000 sightings.
    """
    plans = {i: run.plan for i, run in enumerate(runs) if run.plan.rerank is None}
    again = [i for i, plan in plans.items() if plan.learner != AUTO and not plan.spec.effort]
    number = next(iter(again), None)
    sightings, train = evaluation.sightings, evaluation.protocol.splits[0].train
    if number is None or len(train) > _MOST_TRAINING_ROWS or not n_matches:
        return None
    run, trial = runs[number], runs[number].trials[0]
    feature_set = evaluation.feature_sets[number // len(evaluation.plans)]
    features, made_by = feature_set.source, feature_set.features.made_by
    result, query, gallery, *_ = trial.rankings[0]
    learner = run.plan.spec.make(**trial.params)
    model = Model(made_by, learner, mirror=mirror, normalize=run.plan.normalize)
    persons, cameras = sightings.persons, sightings.cameras
    model.fit(features.read(train), persons[train], cameras[train])
    n_drawn = min(len(gallery), 4 * N_PAIRS)
    references = np.sort(np.random.default_rng(_SEED).choice(gallery, n_drawn, replace=False))
    explainer = Explainer(model, features.read(references), persons[references])
    matches = []
    for place in _chosen(result.first_ranks == 1, result.top_distances[:, 0], n_matches):
        pair = np.array([query[place], gallery[result.top[place, 0]]])
        told = explainer.explain_features(features.read(pair), partial(_images, sightings, pair))
        asked, match = (_side(sightings, row) for row in pair)
        facts = {"right": asked["person"] == match["person"], "explanation": told.to_dict()}
        facts["first_rank"] = int(result.first_ranks[place])
        matches.append({"query": asked, "match": match, **facts})
    return {"schema": SCHEMA, "run": run.title, "matches": matches}


def save_explanations(folder: Path, told: dict[str, Any] | None) -> None:
    """Write `explanations.json` beside a result; an old one never stays beside a new result."""
    if told is None:
        (folder / FILE).unlink(missing_ok=True)
    else:
        write_json(folder / FILE, told)


def _chosen(right: NDArray[np.bool_], distances: NDArray[np.float64], n_matches: int) -> list[int]:
    """Pick queries with right and with wrong first matches, spread over their distances."""
    by_distance = np.argsort(distances, kind="stable")
    sides = [by_distance[right[by_distance]], by_distance[~right[by_distance]]]
    n_right = min(len(sides[0]), max(n_matches - len(sides[1]), (n_matches + 1) // 2))
    chosen: list[int] = []
    for side, wanted in zip(sides, (n_right, n_matches - n_right), strict=True):
        n_taken = min(wanted, len(side))
        # Places in the middle of equal parts of the list.
        places = (np.arange(n_taken) + 0.5) * len(side) / max(1, n_taken)
        chosen += side[places.astype(np.intp)].tolist()
    return chosen


def _images(sightings: Sightings, pair: Rows) -> list[NDArray[np.uint8]]:
    shown = [images.read(path) for path in sightings.select(pair).files()]
    if sightings.boxes is None:
        return shown
    return [images.cut(one, box) for one, box in zip(shown, sightings.boxes[pair], strict=True)]


def _side(sightings: Sightings, row: int) -> dict[str, Any]:
    columns = {"path": sightings.paths, "person": sightings.persons, "camera": sightings.cameras}
    box = None if sightings.boxes is None else sightings.boxes[row].tolist()
    return {**{name: str(values[row]) for name, values in columns.items()}, "box": box}
