"""Which sightings a search may return: by camera, time and person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, unknown_name
from resight.validation import check_names, check_seconds

Texts = NDArray[np.str_]


@dataclass(frozen=True)
class Filter:
    """Conditions that a sighting must meet; the empty filter lets everything through.

    Attributes
    ----------
    cameras, exclude_cameras : sequences of str
        Only these cameras; none of those.
    after, before : float, optional
        Seconds, both ends included. A sighting without a time fails any time condition.
    persons : sequence of str
        Only sightings labelled as one of these people.
    """

    cameras: Sequence[str] = ()
    exclude_cameras: Sequence[str] = ()
    after: float | None = None
    before: float | None = None
    persons: Sequence[str] = ()

    def __post_init__(self) -> None:
        for column in ("cameras", "exclude_cameras", "persons"):
            names = check_names(getattr(self, column), column)
            object.__setattr__(self, column, tuple(names.tolist()))
        for end in ("after", "before"):
            if getattr(self, end) is not None:
                check_seconds(getattr(self, end), end)
        if self.after is not None and self.before is not None and self.after > self.before:
            raise InputError(
                f"after={self.after:g} is later than before={self.before:g}; swap the two"
            )
        both = sorted(set(self.cameras) & set(self.exclude_cameras))
        if both:
            raise InputError(f"camera {both[0]!r} is both selected and excluded; drop one")

    def __bool__(self) -> bool:
        return self != Filter()

    def check_cameras(self, known: Sequence[str]) -> None:
        """Refuse cameras that the gallery does not have."""
        for camera in (*self.cameras, *self.exclude_cameras):
            if camera not in known:
                raise unknown_name("camera", camera, known)

    def mask(self, cameras: Texts, times: NDArray[np.float64], persons: Texts) -> NDArray[np.bool_]:
        """Say for each sighting whether it meets the conditions, shape (n_sightings,)."""
        kept = np.ones(len(cameras), bool)
        if self.cameras:
            kept &= np.isin(cameras, self.cameras)
        if self.exclude_cameras:
            kept &= ~np.isin(cameras, self.exclude_cameras)
        if self.after is not None:
            kept &= times >= self.after  # a comparison with NaN is false
        if self.before is not None:
            kept &= times <= self.before
        if self.persons:
            kept &= np.isin(persons, self.persons)
        return kept

    def widened(self) -> list[str]:
        """Words for each way to drop one condition: offered when nothing was found."""
        given = {
            "any camera": self.cameras,
            "include the excluded cameras": self.exclude_cameras,
            "any time": (self.after, self.before) != (None, None),
            "any person": self.persons,
        }
        return [words for words, some in given.items() if some]
