"""Making an empty gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from resight.errors import InputError, StoreError
from resight.gallery.engines import connect
from resight.gallery.engines.base import Engine
from resight.gallery.manifest import Generation, Manifest, store_model
from resight.gallery.rebuilding import embedding_width


def create(uri: str | Path, model: Any, retention_days: float | None) -> Engine:
    """Make the tables of a gallery; the manifest comes last and makes it one."""
    engine = connect(uri)
    if engine.exists():
        raise StoreError(f"{engine.uri} is already a gallery; open it or choose another place")
    local = Path(engine.uri)
    if "://" not in engine.uri and local.exists() and (local.is_file() or any(local.iterdir())):
        raise InputError(f"{uri} exists and is not a gallery; nothing was written. Choose another")
    check_days(retention_days)
    width = _feature_width(model)
    first = Generation(1, model.fingerprint, embedding_width(model, width), "create")
    engine.create()
    engine.start_generation(1, first.width)
    store_model(engine, 1, model)
    Manifest(model.descriptor_fingerprint, width, (first,), retention_days).store(engine)
    return engine


def check_days(days: float | None) -> None:
    """Refuse a retention that keeps nothing."""
    if days is not None and not days > 0:
        raise InputError(f"retention of {days:g} days: give a number above 0, or none to keep all")


def _feature_width(model: Any) -> int:
    """Describe a picture of nothing to learn how long descriptors are."""
    return int(np.asarray(model.describe([np.zeros((128, 64, 3), np.uint8)])).shape[1])
