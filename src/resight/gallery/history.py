"""The history of models: what each one reached on people held out, whether it is used or not.

It is the journal "models" of a gallery. An entry tells facts about one model; later entries add to
earlier ones. It names neither sightings nor persons, so it outlives the models and the erased.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

from resight.gallery.engines.base import Engine
from resight.gallery.manifest import Manifest

JOURNAL = "models"


def note(engine: Engine, model: str, **facts: Any) -> None:
    """Add facts to what is known about the model of that fingerprint."""
    entry = {"model": model, "when": time.time(), **facts}
    engine.append(JOURNAL, secrets.token_hex(8), json.dumps(entry, allow_nan=False))


def models(engine: Engine, manifest: Manifest) -> list[dict[str, Any]]:
    """List all models of a gallery, oldest first.

    Each has its fingerprint ("model"), "when", "origin" and "state" ("in use", "used before", "not
    used"), and the figures of `resight.gallery.teaching.Candidate` where it was measured.
    """
    known: dict[str, dict[str, Any]] = {}
    kept = [{"model": g.fingerprint, "when": g.when, "origin": g.origin} for g in manifest.history]
    for entry in [*kept, *(json.loads(text) for _, text in engine.read(JOURNAL))]:
        known[entry["model"]] = {**entry, **known.get(entry["model"], {})}
    used = {one["model"] for one in kept} | {m for m, one in known.items() if "used" in one}
    for model, one in known.items():
        one.pop("used", None)
        one["state"] = "used before" if model in used else "not used"
    known[manifest.current.fingerprint]["state"] = "in use"
    return sorted(known.values(), key=lambda one: float(one["when"]))
