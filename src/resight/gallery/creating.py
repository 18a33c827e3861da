"""Making an empty gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from resight.errors import InputError, StoreError, unknown_name
from resight.gallery.engines import connect
from resight.gallery.engines.base import Engine
from resight.gallery.manifest import NAME, Manifest, Stored, store_model
from resight.gallery.rebuilding import generation_of
from resight.validation import MAX_DAYS, check_number


def create(uri: str | Path, model: Any, retention_days: float | None, stored: Stored) -> Engine:
    """Make the tables of a gallery; the manifest comes last and makes it one."""
    engine = empty_place(uri)
    check_days(retention_days)
    if stored not in get_args(Stored):
        raise unknown_name("way to store descriptors", str(stored), get_args(Stored))
    if stored == "none" and not getattr(model, "descriptors", True):
        raise InputError(
            "this model was fitted on your own vectors: a gallery without them (--no-descriptors) "
            "could never change its model. Store them"
        )
    first = generation_of(model, 1, "create")
    made = Manifest(first.descriptor, first.n_features, (first,), retention_days, stored=stored)
    engine.create()
    with engine.transaction():
        engine.start_generation(1, first.width)
        store_model(engine, 1, model)
        made.store(engine)
    return engine


def empty_place(uri: str | Path) -> Engine:
    """Return the engine of a place without a gallery; a killed process may have left its tables."""
    engine = connect(uri)
    if engine.exists() and engine.get(NAME) is not None:
        raise StoreError(f"{engine.uri} is already a gallery; open it or choose another place")
    local = Path(engine.uri)
    if "://" not in engine.uri and local.exists():
        ours = ("gallery.sqlite", "convert.lock")
        if local.is_file() or not all(file.name.startswith(ours) for file in local.iterdir()):
            raise InputError(
                f"{uri} exists and is not a gallery; nothing was written. Choose another"
            )
    return engine


def check_days(days: float | None) -> None:
    """Refuse a retention that keeps nothing, or longer than anybody can promise."""
    if days is not None and check_number(days, "retention", 0, MAX_DAYS) == 0:
        raise InputError("retention of 0 days: give a number above 0, or none to keep all")
