"""Copying a gallery as a whole: backup, restore, and galleries that resight 0.1 wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from resight._files import sync_folder
from resight.errors import InputError, StoreError, require_package
from resight.gallery import log
from resight.gallery.engines.base import META, Batches, Column, Engine, Rows, Table
from resight.gallery.engines.sqlite import SqliteEngine
from resight.gallery.forgetting import resume
from resight.gallery.gallery import Gallery
from resight.gallery.manifest import MODELS, Manifest
from resight.gallery.rebuilding import Step, empty_place, refuse_gallery
from resight.gallery.users import all_users, put_user

_BATCH = 64


class LanceSource:
    """What 0.1 kept with LanceDB in a folder or on an object store; only read."""

    def __init__(self, uri: str) -> None:
        lancedb = require_package("lancedb", "convert", f"converting {uri}")
        self.uri = uri
        if "://" not in uri and not (Path(uri) / "documents.lance").is_dir():
            raise StoreError(f"there is no gallery of resight 0.1 at {uri}; give its folder")
        with self._explaining("cannot be opened"):
            self._database: Any = lancedb.connect(uri)

    @contextmanager
    def _explaining(self, what: str) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError, OSError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
            raise StoreError(
                f"the gallery of resight 0.1 at {self.uri} {what} ({first}). For an object store "
                "check the address and the credentials in the environment"
            ) from error

    def _read(self, table: str, columns: list[str], where: str = "") -> Any:
        with self._explaining(f"cannot be read: table {table}"):
            search = self._database.open_table(table).search().select(columns)
            return (search.where(where) if where else search).limit(10**9).to_arrow()

    def exists(self) -> bool:
        """Whether there is a gallery; `get` says what is wrong if there is none."""
        return True

    def get(self, name: str) -> bytes | None:
        """Read a document."""
        found = self._read("documents", ["content"], f"name = '{name}'")
        return bytes(found["content"][0].as_py()) if found.num_rows else None

    def names(self, prefix: str) -> list[str]:
        """List documents."""
        found = self._read("documents", ["name"])["name"].to_pylist()
        return sorted(name for name in found if name.startswith(prefix))

    def read(self, journal: str) -> list[tuple[str, str]]:
        """Return the entries of a journal, oldest first."""
        if journal == "models":  # 0.1 kept no history of models
            return []
        found = self._read(journal, ["key", "content", "number"]).sort_by("number")
        return list(zip(found["key"].to_pylist(), found["content"].to_pylist(), strict=True))

    def table(self) -> Table:
        """Return all sightings, each once."""
        found = self._read("sightings", META.split(", "))
        columns = [found[name].to_numpy() for name in META.split(", ")]
        numbers = (3, 6)  # time and added
        whole = Table(*(c.astype(float if i in numbers else str) for i, c in enumerate(columns)))
        order = np.lexsort((whole.ids, whole.added))
        _, first = np.unique(whole.ids[order], return_index=True)
        return whole.select(order[np.sort(first)])

    def fetch(self, ids: Sequence[str], column: Column) -> dict[str, bytes]:
        """Read images or descriptors of some sightings."""
        among = ", ".join(f"'{sighting}'" for sighting in ids)  # ids are hexadecimal digits
        found = self._read("sightings", ["id", column], f"id IN ({among})")
        return dict(zip(found["id"].to_pylist(), found[column].to_pylist(), strict=True))

    def embeddings(self, generation: int, width: int) -> Batches:
        """Yield the embeddings of a model."""
        for batch in self._read(f"embeddings_{generation}", ["id", "vector"]).to_batches():
            vectors = batch["vector"].flatten().to_numpy(zero_copy_only=False)
            yield batch["id"].to_numpy(zero_copy_only=False).astype(str), vectors.reshape(-1, width)


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
    with closing(empty_place(uri)) as target:
        return _copy(source, target, on_step)


def _copy(source: Source, target: Engine, on_step: Step | None) -> int:
    """Copy everything in one transaction: a copy that is killed leaves no gallery."""
    manifest, table = Manifest.read(source), source.table()
    target.create()
    with target.transaction():
        refuse_gallery(target)  # that another process has made meanwhile
        for start in range(0, len(table), _BATCH):
            part = table.select(np.arange(start, min(start + _BATCH, len(table))))
            target.add(_rows(source, manifest, part), manifest.current.number)
            if on_step is not None:
                on_step((start + len(part)) / len(table))
        for number, width in ((model.number, model.width) for model in manifest.history):
            for name in [*source.names(f"model/{number}/"), f"trained/{number}"]:
                target.put({name: source.get(name) or b"[]"})
            target.start_generation(number, width)
            for ids, vectors in source.embeddings(number, width):
                target.embed(number, ids, vectors)
        for journal in ("labels", MODELS):
            for key, text in source.read(journal):
                target.append(journal, key, text)
        if isinstance(source, Engine):  # sessions and tokens stay behind
            log.write(target, list(log.log_rows(source)))
            for user in all_users(source):
                put_user(target, user)
        else:
            log.adopt(target, source.read("access"))
        history = tuple(replace(generation, indexed=0) for generation in manifest.history)
        replace(manifest, history=history, pending=None).store(target)
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
