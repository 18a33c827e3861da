"""The first model of a gallery and the next: making an empty gallery, and rebuilding one.

A rebuild may be killed at any moment and goes on where it was. The new model is stored first and
noted in the manifest, embeddings follow in batches, each in one commit. The switch is one more,
when all are there: until then nobody reads the new embeddings, from then on nobody the old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

import numpy as np

from resight.errors import InputError, StoreError, unknown_name
from resight.gallery import manifest as kept
from resight.gallery.engines import connect
from resight.gallery.engines.base import Engine
from resight.gallery.manifest import Generation, Manifest, Origin, Stored
from resight.gallery.view import embed_rows

_PASSES = 5  # later ones embed what was added meanwhile; searches fill in the very last
BATCH = 512
Step = Callable[[float], None]  # called with the share that is done


def create(uri: str | Path, model: Any, retention_days: float | None, stored: Stored) -> Engine:
    """Make the tables of a gallery; the manifest comes last and makes it one."""
    engine = empty_place(uri)
    kept.check_days(retention_days)
    first = generation_of(model, 1, "create")
    if stored not in get_args(Stored):
        raise unknown_name("way to store descriptors", str(stored), get_args(Stored))
    if stored == "none" and not model.descriptors:
        raise InputError(
            "this model was fitted on your own vectors: a gallery without them (--no-descriptors) "
            "could never change its model. Store them"
        )
    made = Manifest(first.descriptor, first.n_features, (first,), retention_days, stored=stored)
    engine.create()
    with engine.transaction():
        engine.start_generation(1, first.width)
        kept.store_model(engine, 1, model)
        made.store(engine)
    return engine


def empty_place(uri: str | Path) -> Engine:
    """Return the engine of a place without a gallery; a killed process may have left its tables."""
    engine = connect(uri)
    if engine.exists():
        refuse_gallery(engine)
    local = Path(engine.uri)
    if "://" not in engine.uri and local.exists():
        files = [] if local.is_file() else [file.name for file in local.iterdir()]
        if local.is_file() or not all(name.startswith("gallery.sqlite") for name in files):
            raise InputError(
                f"{uri} exists and is not a gallery; nothing was written. Choose another"
            )
    return engine


def refuse_gallery(engine: Engine) -> None:
    """Refuse tables that hold a gallery already."""
    if engine.get(kept.NAME) is not None:
        raise StoreError(f"{engine.uri} is already a gallery; open it or choose another place")


def rebuild(
    engine: Engine,
    model: Any,
    origin: Origin,
    examples: Sequence[str],
    on_step: Step | None,
    batch_size: int,
) -> None:
    """Embed every sighting with another model, then switch; see `Gallery.rebuild`."""
    manifest = Manifest.read(engine)
    wanted = generation_of(model, 0, origin)
    if wanted.descriptor != manifest.descriptor and manifest.stored != "none":
        raise InputError(
            f"the model uses descriptors {wanted.descriptor}, the gallery "
            f"{manifest.descriptor}; train a model on the same descriptors or create a new gallery"
        )
    job = _resumed(engine, manifest, wanted, examples) or _begun(engine, model, wanted, examples)
    _embed_all(engine, manifest, job, model, batch_size, on_step or (lambda share: None))
    _switch(engine, job)


def generation_of(model: Any, number: int, origin: Origin) -> Generation:
    """Ask a model how long its descriptors are, and try how long its embeddings become."""
    if not hasattr(model, "descriptor_fingerprint"):
        raise InputError(
            f"give a fitted model, as resight.load(path) reads it, not {type(model).__name__}"
        )
    n = model.n_features
    width = int(np.asarray(model.embed(np.zeros((1, n), np.float32))).shape[1])
    kind = {"descriptor": model.descriptor_fingerprint, "n_features": n}
    return Generation(number, model.fingerprint, width, origin, **kind)


def unfinished(engine: Engine) -> list[int]:
    """List models that something is stored of, though the manifest does not name them."""
    stored = {int(name.split("/")[1]) for name in engine.names("model/")}
    return sorted((stored | set(engine.generations())) - Manifest.read(engine).numbers)


def _resumed(
    engine: Engine, manifest: Manifest, wanted: Generation, examples: Sequence[str]
) -> Generation | None:
    """Return the job begun for the same model; killed after its switch, that is in use already."""
    same = attrgetter("fingerprint", "width", "origin")
    for job in (manifest.current, manifest.pending):
        if job is None or job.number not in engine.generations() or same(job) != same(wanted):
            continue
        if kept.trained_on(engine, job.number) == list(examples):
            return job
    return None


def _begun(engine: Engine, model: Any, wanted: Generation, examples: Sequence[str]) -> Generation:
    """Make room for a model's embeddings; its number was never used before."""
    with engine.transaction():
        manifest = Manifest.read(engine)
        job = replace(wanted, number=max(*manifest.numbers, *unfinished(engine), 0) + 1)
        engine.start_generation(job.number, job.width)
        kept.store_model(engine, job.number, model, examples)
        replace(manifest, pending=job).store(engine)
    return job


def _embed_all(
    engine: Engine, manifest: Manifest, job: Generation, model: Any, size: int, on_step: Step
) -> None:
    """Embed what has no embedding yet; tell the share that is done after each batch."""
    for _ in range(_PASSES):
        ids, present = engine.table().ids.tolist(), engine.embedded(job.number)
        lacking = [sighting for sighting in ids if sighting not in present]
        if not lacking:
            return
        for start in range(0, len(lacking), size):
            embed_rows(engine, manifest, job.number, model, lacking[start : start + size])
            on_step(1.0 - max(0, len(lacking) - start - size) / len(ids))


def _switch(engine: Engine, job: Generation) -> None:
    """Put the new model in use and remove those that nobody can go back to."""
    with engine.transaction():
        manifest = Manifest.read(engine)  # again: it may have changed since the job was begun
        if job.number in manifest.numbers:
            return
        if manifest.pending != job:
            raise StoreError(
                f"gallery {engine.uri}: another process is switching to another model, "
                "so this one was not used. Wait for it to finish and run the same command again"
            )
        base, *later = (*manifest.history, job)
        replace(manifest.with_history((base, *later[-2:])), pending=None).store(engine)
        kept.note(engine, job.fingerprint, origin=job.origin, used=True)
        for number in unfinished(engine):
            kept.drop_model(engine, number)
