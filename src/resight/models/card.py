"""Model cards: what a model was learned from, how good it is, and (in ``card.md``) its limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from resight._version import __version__
from resight.learners._scoring import cross_camera_rank1
from resight.models.calibrating import iterates
from resight.models.held_out_distances import Array, distances_of
from resight.tuning.cross_validation import person_folds

if TYPE_CHECKING:
    from resight.models.fitting import Fitted
    from resight.models.model import Model
    from resight.models.training import Training

_FOLDS = 5
_ROWS = 2000  # sightings up to which the learner is fitted five times more for a figure
CALIBRATED = "probabilities, fitted on the same people, held out in folds"
_TEMPLATE = Path(__file__).with_suffix(".md")


def model_card(fitted: Fitted, training: Training) -> str:
    """Return the card of a fitted model in Markdown; it names cameras, and no person."""
    model, seen, name = fitted.model, training.sightings, type(fitted.model.learner).__name__
    cameras, counts = np.unique(seen.cameras, return_counts=True)
    shares = ", ".join(f"{name} {n:,}" for name, n in zip(cameras, counts, strict=True))
    facts = {
        "data": f"{seen.name}: {fitted.n_sightings:,} sightings of {fitted.n_people:,} people",
        "cameras": f"{len(cameras):,} (sightings: {shares})",
        "descriptors": _descriptors(model),
        **{f"network {one.name}": _network(one.preprocessing_) for one in model.networks},
        "learner": " ".join(repr(model.learner).split()) if fitted.decision is None else name,
        "choice": fitted.decision.sentence if fitted.decision else "none, settings were given",
        "on held-out people": _held_out(fitted, training),
        "calibration": f"none: {fitted.uncalibrated}" if fitted.uncalibrated else CALIBRATED,
        "unreadable images": f"{len(fitted.failures):,}",
        "fingerprint": model.fingerprint,
        "resight version": __version__,
    }
    rows = "\n".join(f"| {name} | {text.replace('|', '/')} |" for name, text in facts.items())
    return _TEMPLATE.read_text("utf-8").format(rows=rows)


def held_out_rank1(model: Model, features: Array, persons: Array, cameras: Array) -> float:
    """Rank 1 across cameras of people held out in folds, each by a metric of the others."""
    distances = distances_of(model, features, persons, cameras)
    folds = person_folds(persons, cameras, _FOLDS)
    rates = [cross_camera_rank1(distances(a, b), persons[b], cameras[b]) for a, b in folds]
    return float(np.mean(rates))


def _held_out(fitted: Fitted, training: Training) -> str:
    model, rows = fitted.model, training.rows
    if fitted.uncalibrated or iterates(model.learner) or len(rows) > _ROWS:
        return "not measured here; `resight evaluate` does"
    features = training.variants[-1 if model.mirror else 0].features[rows]
    found = held_out_rank1(model, features, *training.labels)
    return f"rank 1 {100 * found:.1f}% across cameras, a fifth of the people held out at a time"


def _descriptors(model: Model) -> str:
    names = [one if isinstance(one, str) else one.name for one in model.descriptors]
    mirrored = ", averaged over mirror images" if model.mirror else ""
    return f"{'+'.join(names) or 'own vectors'}: {model.n_features:,} numbers{mirrored}"


def _network(told: dict[str, Any]) -> str:
    names = {"licence": "licence", "source": "source", "training_data": "trained on"}
    return "; ".join(f"{words} {told.get(key) or 'not stated'}" for key, words in names.items())
