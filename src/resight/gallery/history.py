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

    Returns
    -------
    list of dict
        ``model`` (fingerprint), ``when``, ``origin``, ``state`` ("in use", "used before" or "not
        used"); where it was measured ``before`` and ``after`` (rank 1 in percent, of the model in
        use then and of this one), ``queries``, ``people``, ``p_value``, and ``why`` it is what it
        is.
    """
    known: dict[str, dict[str, Any]] = {}
    for generation in manifest.history:
        used = {"origin": generation.origin, "when": generation.when, "used": True}
        known[generation.fingerprint] = {"model": generation.fingerprint, **used}
    for _, text in engine.read(JOURNAL):
        entry = json.loads(text)
        before = known.get(entry["model"], {})
        known[entry["model"]] = {**entry, **before} | {"used": _used(entry) or _used(before)}
    found = sorted(known.values(), key=lambda one: float(one["when"]))
    for one in found:
        earlier = "used before" if one.pop("used") else "not used"
        one["state"] = "in use" if one["model"] == manifest.current.fingerprint else earlier
    return found


def _used(entry: dict[str, Any]) -> bool:
    return bool(entry.get("used", False))
