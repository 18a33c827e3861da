"""Copying a gallery as a whole: backup, restore, and galleries that resight 0.1 wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from resight._files import sync_folder
from resight.errors import InputError, StoreError
from resight.gallery.engines.base import Engine, Rows, Table
from resight.gallery.engines.lance import LanceSource
from resight.gallery.engines.sqlite import SqliteEngine
from resight.gallery.forgetting import resume
from resight.gallery.gallery import Gallery
from resight.gallery.manifest import MODELS, Generation, Manifest
from resight.gallery.rebuilding import empty_place

_BATCH = 64
Step = Callable[[float], None]  # called with the share that is done
Source = Engine | LanceSource


def backup(uri: str | Path, file: Path, on_step: Step | None = None) -> int:
    """Write a gallery, as it is now, into one file; return the number of sightings."""
    if file.exists():
        raise InputError(f"{file} exists; a backup is not written over it. Choose another name")
    gallery = Gallery.open(uri)
    if file.resolve().is_relative_to(Path(gallery.uri).resolve()):
        raise InputError(f"{file} lies in the gallery itself; choose a place outside of it")
    resume(gallery)  # what is to be erased shall not live on in a backup
    part = file.with_name(f".{file.name}.part")
    _remove(part)  # of a backup that was killed
    target = SqliteEngine(str(file), part)
    try:
        with gallery.engine.transaction(reading=True):
            n = _copy(gallery.engine, target, on_step)
        target.into_one_file()
        os.replace(part, file)
        sync_folder(file.parent)
    finally:
        target.close()
        _remove(part)
        gallery.close()
    return n


def _remove(part: Path) -> None:
    """Remove a file with what SQLite left beside it."""
    for leftover in part.parent.glob(f"{part.name}*"):
        leftover.unlink()


def restore(file: Path, uri: str | Path, on_step: Step | None = None) -> int:
    """Make a gallery from a backup, on whichever engine; return the number of sightings."""
    if not file.is_file():
        raise InputError(f"there is no backup {file}; give a file of `resight gallery backup`")
    with closing(SqliteEngine(str(file), file)) as source:
        return _copied_into(source, uri, on_step)


def convert(old: str, uri: str | Path, on_step: Step | None = None) -> int:
    """Make a gallery from one that resight 0.1 kept in LanceDB; the old one stays as it is."""
    return _copied_into(LanceSource(old), uri, on_step)


def _copied_into(source: Source, uri: str | Path, on_step: Step | None) -> int:
    Manifest.read(source)  # refuses what is no gallery before anything is made
    with closing(empty_place(uri)) as target, target.claimed("convert"):
        empty_place(uri)  # again: another process may have finished meanwhile
        return _copy(source, target, on_step)


def _copy(source: Source, target: Engine, on_step: Step | None) -> int:
    """Copy everything in one transaction: a copy that is killed leaves no gallery."""
    manifest, table = Manifest.read(source), source.table()
    target.create()
    with target.transaction():
        for start in range(0, len(table), _BATCH):
            part = table.select(np.arange(start, min(start + _BATCH, len(table))))
            target.add(_rows(source, manifest, part), manifest.current.number)
            if on_step is not None:
                on_step((start + len(part)) / len(table))
        for generation in manifest.history:
            _copy_model(source, target, generation, table)
        for journal in ("labels", "access", MODELS):
            for key, text in source.read(journal):
                target.append(journal, key, text)
        if isinstance(source, Engine):  # sessions and tokens stay behind
            target.log_append(list(source.log_rows()))
            for user in source.users():
                target.put_user(user)
        history = tuple(replace(generation, indexed=0) for generation in manifest.history)
        replace(manifest, history=history).store(target)
    return len(table)


def _rows(source: Source, manifest: Manifest, part: Table) -> Rows:
    ids, features = part.ids.tolist(), None
    images = source.fetch(ids, "image")
    try:
        if manifest.stored != "none":
            stored, kind = source.fetch(ids, "feature"), np.dtype(manifest.stored).newbyteorder("<")
            features = np.array([np.frombuffer(stored[key], kind) for key in ids])
        return Rows(part, [images[key] for key in ids], features, None)
    except KeyError as error:
        lacks = f"gallery {source.uri}: sighting {error} has no image or descriptor"
        raise StoreError(lacks) from error


def _copy_model(source: Source, target: Engine, generation: Generation, table: Table) -> None:
    number = generation.number
    for name in [*source.names(f"model/{number}/"), f"trained/{number}"]:
        target.put({name: source.get(name) or b"[]"})
    target.start_generation(number, generation.width)
    row_of = {sighting: row for row, sighting in enumerate(table.ids.tolist())}
    for ids, vectors in source.embeddings(number, generation.width):
        known = np.array([sighting in row_of for sighting in ids.tolist()], bool)
        rows = np.array([row_of[sighting] for sighting in ids[known].tolist()], np.intp)
        target.embed(number, table.select(rows), vectors[known])
