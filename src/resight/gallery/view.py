"""A gallery as one process sees it at one moment: table, persons and embeddings in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import StoreError
from resight.evaluation.calibration import Calibration
from resight.gallery.engines.base import Engine, Floats32, Table
from resight.gallery.index import ExactIndex
from resight.gallery.labels import Entry, Labels
from resight.gallery.manifest import ERASING, Manifest, load_model, models, trained_on
from resight.gallery.people import People
from resight.images import read

_BATCH = 256
_ROUNDS = 5  # others may add sightings without an embedding while a model is replaced


@dataclass(frozen=True)
class View:
    """What a search looks at; replaced as a whole when the gallery has changed.

    Attributes
    ----------
    index : ExactIndex or None
        Embeddings in the order of the table; None when they are too large for the memory allowed.
    trained_on : frozenset of str
        Sightings of this gallery that its model was fitted on.
    """

    manifest: Manifest
    model: Any
    table: Table
    labels: Labels
    index: ExactIndex | None
    version: tuple[object, object]
    trained_on: frozenset[str] = frozenset()

    @cached_property
    def persons(self) -> NDArray[np.str_]:
        """The person of each sighting after everything that was taught."""
        return self.labels.persons(self.table.ids.tolist())

    @cached_property
    def tracks(self) -> NDArray[np.intp]:
        """A number for each sighting that those of one track share; without a track it is alone.

        Names of tracks are taken as one camera's and, where people were labelled before, as one
        person's: datasets also call a recording of many people a sequence.
        """
        number = _numbered(self.table.cameras, self.table.sequences, self.table.persons)
        alone = number.max(initial=-1) + 1 + np.arange(len(number))
        return np.where(self.table.sequences == "", alone, number)

    @cached_property
    def people(self) -> People:
        """The labelled people, with the rows of each."""
        return People(self)

    @cached_property
    def track_sizes(self) -> NDArray[np.intp]:
        """How many sightings each track has, by its number in `tracks`."""
        return np.bincount(self.tracks)

    @cached_property
    def units(self) -> NDArray[np.intp]:
        """A number for each sighting that those of one known person, or track, in a camera share.

        Sightings that nothing joins to others are alone.
        """
        loose = np.char.add("\0", self.tracks.astype(str))
        # No person's name begins with that character.
        names = np.where(self.persons == "", loose, self.persons)
        return np.unique(_numbered(self.table.cameras, names), return_inverse=True)[1]

    @property
    def calibration(self) -> Calibration | None:
        """What the model's distances mean, if that is known."""
        return getattr(self.model, "calibration", None)

    @cached_property
    def learned_from(self) -> NDArray[np.bool_]:
        """Which sightings the model learned from."""
        rows, known = np.isin(self.table.ids, list(self.trained_on)), self.calibration
        if known is not None and self.index is not None and len(known.trained):
            rows |= known.knows(self.index.embeddings)
        return rows

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """What a search worked out about this view and the next one can use."""
        return {}

    @cached_property
    def named(self) -> set[str]:
        """The names of all labelled people."""
        return set(self.persons.tolist()) - {""}

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each sighting."""
        return {sighting: row for row, sighting in enumerate(self.table.ids.tolist())}

    @cached_property
    def newest(self) -> float:
        """The latest time of a sighting; 0 where none is known."""
        return float(np.nanmax(self.table.times, initial=0.0))

    @cached_property
    def cameras(self) -> list[str]:
        """The cameras, sorted."""
        return sorted(set(self.table.cameras.tolist()))


def _numbered(*columns: NDArray[np.str_]) -> NDArray[np.intp]:
    """Return numbers that rows share if they are equal in all columns."""
    numbers = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        numbers = numbers * len(values) + codes
    return numbers


def read_journal(engine: Engine) -> list[Entry]:
    """Read what was taught, oldest first."""
    return [Entry.load(text) for _, text in engine.read("labels")]


def embeddings_of(engine: Engine, view: View, rows: Any) -> Floats32:
    """Return the embeddings of some rows of the table, (len(rows), r)."""
    if view.index is not None:
        return view.index.embeddings[rows]
    model, numbers = view.manifest.current, view.table.numbers[rows].tolist()
    found = [engine.vectors(model.number, model.width, n, n + 1)[1] for n in numbers]
    return np.concatenate([np.empty((0, model.width), np.float32), *found])


def features_of(
    engine: Engine, manifest: Manifest, model: Any, ids: list[str]
) -> dict[str, Floats32]:
    """Read descriptors of sightings, or compute them from the images where none are stored.

    Those that were removed meanwhile are left out.
    """
    if manifest.stored == "none":
        images = engine.fetch(ids, "image")
        if not images:
            return {}
        pictures = [read(content, f"sighting {key}") for key, content in images.items()]
        return dict(zip(images, np.asarray(model.describe(pictures), np.float32), strict=True))
    kind = np.dtype(manifest.stored).newbyteorder("<")
    found = engine.fetch(ids, "feature")
    return {key: np.frombuffer(value, kind).astype(np.float32) for key, value in found.items()}


def embed_rows(engine: Engine, manifest: Manifest, number: int, model: Any, ids: list[str]) -> None:
    """Embed sightings from their descriptors; those removed meanwhile are skipped."""
    found = features_of(engine, manifest, model, ids)
    ids = [sighting for sighting in ids if sighting in found]
    if ids:
        embeddings = np.asarray(model.embed(np.array([found[key] for key in ids])), np.float32)
        engine.embed(number, np.array(ids), embeddings)


def current_view(engine: Engine, last: View | None, memory_limit: int) -> View:
    """Read the gallery, or of it what has changed since the `last` view."""
    version = engine.version()
    if last is not None and last.version == version:
        return last
    if last is not None and last.version[0] == version[0]:
        labels = Labels(last.table.ids, last.table.persons, read_journal(engine))
        return replace(last, labels=labels, version=version)
    for _ in range(_ROUNDS):
        with engine.transaction(reading=True):  # one state, whatever others remove meanwhile
            manifest = Manifest.read(engine)
            known = last is not None and last.manifest.current.number == manifest.current.number
            model = last.model if last is not None and known else _model(engine, manifest)
            view, lacking = _load(engine, manifest, model, memory_limit)
        if not lacking:
            return view
        for start in range(0, len(lacking), _BATCH):
            part = lacking[start : start + _BATCH]
            embed_rows(engine, manifest, manifest.current.number, model, part)
    raise StoreError(
        f"gallery {engine.uri}: {len(lacking)} sightings have no embedding and get none. "
        "`resight gallery check` lists what is wrong; restore a backup"
    )


def _model(engine: Engine, manifest: Manifest) -> Any:
    model = load_model(engine, manifest.current.number)
    if model.descriptor_fingerprint != manifest.descriptor:
        raise StoreError(
            f"gallery {engine.uri} has descriptors {manifest.descriptor}, but this version of "
            f"resight computes {model.descriptor_fingerprint}: the two are not comparable. Use the "
            "version that created the gallery, or create a new one and add the images again"
        )
    return model


def _load(engine: Engine, manifest: Manifest, model: Any, limit: int) -> tuple[View, list[str]]:
    """Read the gallery into memory; return also the sightings that lack an embedding."""
    version, table = engine.version(), engine.table()
    labels = Labels(table.ids, table.persons, read_journal(engine))
    generation, index = manifest.current, None
    if len(table) * generation.width * 4 <= limit:
        embeddings = np.empty((len(table), generation.width), np.float32)
        present = np.zeros(len(table), bool)
        row_of = {sighting: row for row, sighting in enumerate(table.ids.tolist())}
        for ids, vectors in engine.embeddings(generation.number, generation.width):
            rows = np.array([row_of[sighting] for sighting in ids.tolist()], np.intp)
            embeddings[rows], present[rows] = vectors, True
        index = ExactIndex(embeddings) if present.all() else None
    else:
        embedded = engine.embedded(generation.number)
        present = np.array([sighting in embedded for sighting in table.ids.tolist()], bool)
    known = frozenset(trained_on(engine, generation.number))
    return View(manifest, model, table, labels, index, version, known), table.ids[~present].tolist()


def summary(engine: Engine, view: View) -> dict[str, Any]:
    """Describe a gallery."""
    generation, table, pending = view.manifest.current, view.table, view.manifest.pending
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
        "bytes_per_sighting": _sizes(engine, view),
        "erasing_unfinished": len(engine.names(ERASING)),
    }


def _sizes(engine: Engine, view: View) -> dict[str, float]:
    """Bytes of an image (in the mean of some), a descriptor and an embedding."""
    images = engine.fetch(view.table.ids[:_BATCH].tolist(), "image").values()
    stored, generation = view.manifest.stored, view.manifest.current
    return {
        "image": sum(map(len, images)) / max(1, len(images)),
        "descriptor": 0.0 if stored == "none" else np.dtype(stored).itemsize * view.manifest.width,
        "embedding": 4.0 * generation.width,
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
