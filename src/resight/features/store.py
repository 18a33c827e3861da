"""Feature store: descriptors of images on disk, computed once, found again by image contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from resight._files import digest_of
from resight.datasets.sightings import Sightings, require_sightings
from resight.descriptors._base import Describes
from resight.descriptors.describing import Failure
from resight.errors import InputError
from resight.features._chunks import Rows
from resight.features._extraction import Job, cannot_use
from resight.features._tables import DescriptorTables
from resight.features.describing import identify
from resight.workers.executors import Executor, local

__all__ = ["Failure", "FeatureStore", "Features"]


@dataclass(frozen=True)
class Features:
    """Descriptors of some sightings, one row each, in their order.

    Attributes
    ----------
    parts : tuple of float32 arrays (n, d_i), memory-mapped
        One table a descriptor, as joined by ``+`` in the name. A row that failed is all NaN.
    descriptors : tuple of str
        Their names.
    blocks : tuple of int
        Widths that `BlockNormalizer` treats separately, over all parts.
    failures : tuple of Failure
        Sightings without features (only with ``on_error="collect"``).
    changed : tuple of str
        Files whose contents differ from what the store had under that name.
    computed : int
        Vectors that were not in the store when the call began.
    fingerprint : str
        Of descriptors and image contents: equal fingerprints mean equal features.
    file : str or None
        Where own vectors were read from.
    made_by : tuple of Describes
        The descriptors themselves; empty for a user's own vectors.
    """

    parts: tuple[Rows, ...]
    descriptors: tuple[str, ...]
    blocks: tuple[int, ...]
    fingerprint: str
    failures: tuple[Failure, ...] = ()
    changed: tuple[str, ...] = ()
    computed: int = 0
    file: str | None = None
    made_by: tuple[Any, ...] = ()

    @property
    def networks(self) -> list[bool]:
        """Which parts a network of the user's made."""
        from resight.descriptors import Network

        made = self.made_by or (None,) * len(self.parts)
        return [isinstance(one, Network) for one in made]

    @cached_property
    def features(self) -> Rows:
        """All parts side by side, (n, d): the memory map itself if there is one part only."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts, axis=1)

    @property
    def blocks_of_parts(self) -> list[tuple[int, ...]]:
        """Widths of the blocks of each part."""
        ends = np.cumsum(self.blocks)
        parts = np.searchsorted(np.cumsum([part.shape[1] for part in self.parts]), ends)
        widths = np.array(self.blocks)
        return [tuple(widths[parts == i].tolist()) for i in range(len(self.parts))]

    @property
    def usable(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask (n,) of the sightings that have features."""
        mask = np.ones(len(self.parts[0]), bool)
        mask[[failure.row for failure in self.failures]] = False
        return mask


class FeatureStore:
    """Folder of descriptors, safe to fill from several processes and to interrupt at any time.

    Parameters
    ----------
    folder : path
        Made on first use.

    Examples
    --------
    >>> store = FeatureStore("features")  # doctest: +SKIP
    >>> store.ensure(sightings, "gog+lomo-dagger").features.shape  # doctest: +SKIP
    (900, 54582)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{folder} is a file; a feature store is a folder, name another one")

    def ensure(
        self,
        sightings: Sightings,
        descriptor: str | Describes,
        mirror: bool = False,
        executor: Executor | None = None,
        on_error: Literal["raise", "collect"] = "raise",
    ) -> Features:
        """Return features of all sightings, computing only what the store does not have.

        Parameters
        ----------
        sightings : Sightings
            Which images; where `boxes` are given, these parts of them.
        descriptor : str or object
            A name such as ``"gog"``, several joined by ``+``, or an object with `name`,
            `n_features`, `fingerprint` and `describe(image)`.
        mirror : bool
            Average each image's descriptor with that of its mirror image (with names only).
        executor : Executor or None
            `resight.cluster(...)` or `local(jobs)`; None uses one process per core.
        on_error : {"raise", "collect"}
            What to do about images that cannot be read or described, once all the others are
            done: raise an error that lists them, or return NaN rows and `failures`.
        """
        if on_error not in ("raise", "collect"):
            raise InputError(f"on_error={on_error!r}; allowed: 'raise', 'collect'")
        if len(require_sightings(sightings)) == 0:
            raise InputError("no sightings given; give at least one")
        wanted = _descriptors(descriptor, mirror)
        crops, unreadable = identify(sightings)
        if unreadable and on_error == "raise":
            raise cannot_use(unreadable)
        jobs = [Job(self.folder, sightings, crops, unreadable, one) for one in wanted]
        with local() if executor is None else nullcontext(executor) as workers:
            parts = [job.finish(workers, on_error) for job in jobs]
        return Features(
            parts=tuple(parts),
            descriptors=tuple(job.descriptor.name for job in jobs),
            blocks=tuple(width for job in jobs for width in job.blocks),
            failures=tuple(sorted(set().union(*(job.failures for job in jobs)))),
            changed=tuple(sorted(set().union(*(job.changed for job in jobs)))),
            computed=sum(job.computed for job in jobs),
            fingerprint=digest_of(*(part for job in jobs for part in (job.tables.id, *job.keys))),
            made_by=tuple(wanted),
        )

    def lookup(self, descriptor: Describes) -> Callable[[Sequence[str]], Rows]:
        """Return a function that reads vectors which are stored now, by the keys of crops.

        It gives an array (n, n_features), with NaN where the store has no vector or not all of it.
        """
        tables = [DescriptorTables(self.folder, part) for part in _parts(descriptor)]
        places = [table.places() for table in tables]

        def rows(keys: Sequence[str]) -> Rows:
            parts = zip(tables, places, strict=True)
            return np.concatenate([table.rows(keys, known) for table, known in parts], axis=1)

        return rows


def _parts(descriptor: Describes) -> Sequence[Describes]:
    """Descriptors that were joined; they are stored apart."""
    return getattr(descriptor, "parts", (descriptor,))


def _descriptors(given: str | Describes, mirror: bool) -> Sequence[Describes]:
    if not isinstance(given, str) and not hasattr(given, "n_features"):
        raise InputError(f"descriptor {given!r}: give a name such as 'gog', or a descriptor")
    if not isinstance(given, str):
        if mirror:
            raise InputError("mirror=True goes with a descriptor's name; an object decides itself")
        return _parts(given)
    from resight.descriptors import descriptor

    return [descriptor(name.strip(), mirror=mirror) for name in given.split("+")]
