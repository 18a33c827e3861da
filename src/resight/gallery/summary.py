"""What a gallery holds, in plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from resight.gallery.engines.base import Engine
from resight.gallery.manifest import ERASING, Generation, models
from resight.gallery.view import View


def summary(engine: Engine, view: View, pending: Generation | None) -> dict[str, Any]:
    """Describe a gallery; `pending` is the model of a rebuild that has not finished."""
    generation, table = view.manifest.current, view.table
    times = table.times[~np.isnan(table.times)]
    return {
        "uri": engine.place,
        "sightings": len(table),
        "persons": len(view.named),
        "labelled": int((view.persons != "").sum()),
        "cameras": {c: int((table.cameras == c).sum()) for c in view.cameras},
        "times": [float(times.min()), float(times.max())] if len(times) else None,
        "descriptor": view.manifest.descriptor,
        "model": generation.fingerprint,
        "model_origin": generation.origin,
        "model_since": generation.when,
        "model_pending": None if pending is None else pending.fingerprint,
        "models": models(engine, view.manifest),
        "dimensions": generation.width,
        "calibrated": view.model.probability(np.zeros(1)) is not None,
        "answers_right": _measured(view),
        "search": _search(engine, view),
        "indexed": generation.indexed,
        "retention_days": view.manifest.retention_days,
        "taught": len(view.labels.active),
        "bytes_per_sighting": engine.sizes(generation.number),
        "erasing_unfinished": len(engine.names(ERASING)),
    }


def _measured(view: View) -> dict[str, dict[str, float]]:
    """How often answers were right about held-out people: all, of each camera, by height."""
    calibration = view.calibration
    if calibration is None or not calibration.decides:
        return {}
    rates, groups = view.manifest.rates, {"all cameras": None, **calibration.groups()}
    return {name: calibration.measured(rates, some) for name, some in groups.items()}


def _search(engine: Engine, view: View) -> str:
    if view.index is not None:
        return "exact, in memory"
    if engine.approximate:
        return "approximate, by the engine" if view.manifest.current.indexed else "by the engine"
    return (
        "exact, read from the disk for each search (above the memory limit; PostgreSQL with "
        "pgvector searches approximately and quicker)"
    )
