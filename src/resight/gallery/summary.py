"""What a gallery holds, in plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from resight.gallery.manifest import Generation
from resight.gallery.view import View


def summary(uri: str, view: View, pending: Generation | None) -> dict[str, Any]:
    """Describe a gallery; `pending` is the model of a rebuild that has not finished."""
    generation, table = view.manifest.current, view.table
    known = {person for person in view.persons.tolist() if person}
    times = table.times[~np.isnan(table.times)]
    return {
        "uri": uri,
        "sightings": len(table),
        "persons": len(known),
        "labelled": int((view.persons != "").sum()),
        "cameras": {c: int((table.cameras == c).sum()) for c in view.cameras},
        "times": [float(times.min()), float(times.max())] if len(times) else None,
        "descriptor": view.manifest.descriptor,
        "model": generation.fingerprint,
        "model_origin": generation.origin,
        "model_since": generation.when,
        "model_pending": None if pending is None else pending.fingerprint,
        "dimensions": generation.width,
        "calibrated": view.model.probability(np.zeros(1)) is not None,
        "search": "exact, in memory" if view.index is not None else "by the database",
        "indexed": generation.indexed,
        "retention_days": view.manifest.retention_days,
        "taught": len(view.labels.active),
    }
