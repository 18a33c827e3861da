"""How sure a search is: probabilities of its hits, and whether the person is there at all.

The calibration judges a sighting among all others that the search looked at. Each camera is
judged by itself: within a camera the candidates exclude each other, between cameras they do not,
and distances to different cameras have different units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from resight.gallery.engines.base import Floats32
from resight.gallery.view import View

if TYPE_CHECKING:  # it brings SciPy, which opening a gallery does not need
    from resight.evaluation.calibration import Calibration

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

PRESENT = 0.5  # how probable it is before looking that a camera has seen the person
_MIN_REFERENCE = 10  # sightings that a median of distances needs


@dataclass(frozen=True)
class Presence:
    """Whether the query's person seems to be among the sightings that were searched.

    Attributes
    ----------
    likely : bool
        False: probably not in this gallery.
    false_accepts : float
        Of people who are not there, the part for whom `likely` is true nevertheless.
    compared : int
        Sightings that were searched; the more, the closer the first one must be.
    """

    likely: bool
    false_accepts: float
    compared: int

    @property
    def words(self) -> str:
        """Say it in a sentence."""
        decision = "Probably in" if self.likely else "Probably not in"
        return (
            f"{decision} this gallery (at a false-accept rate of "
            f"{100 * self.false_accepts:.0f}%, among {self.compared} sightings)"
        )


@dataclass(frozen=True)
class Judgement:
    """Probability of every row of the table (0 where it was not searched), and the decision."""

    probabilities: Floats
    presence: Presence


def judge(
    view: View,
    query: Floats32,
    allowed: Bools | None,
    like: Sequence[str] = (),
    by_track: bool = False,
) -> Judgement | None:
    """Judge all sightings that a search looked at; None where that is not possible.

    It needs a calibrated model, embeddings in memory and at least 10 sightings.

    Parameters
    ----------
    query : float32 array (r,)
    allowed : bool array (n,), optional
        What was searched.
    like : sequence of str
        The stored sightings that the query comes from.
    by_track : bool
        Whether the sightings of a track are one candidate, as those of a known person are.
    """
    calibration: Calibration | None = getattr(view.model, "calibration", None)
    if calibration is None or view.index is None:
        return None
    from resight.evaluation.calibration import FALSE_ACCEPTS

    others = np.ones(len(view.table), bool)
    others[[view.rows[sighting] for sighting in like]] = False
    searched = others if allowed is None else allowed
    if others.sum() < _MIN_REFERENCE or not searched.any():
        return None
    z = _relative(view, view.index.distances(query), others)
    log_ratios = calibration.log_ratios(z)
    units = view.persons
    if by_track:  # no person's name begins with this character
        units = np.where(units == "", np.char.add("\0", view.tracks.astype(str)), units)
    probabilities = np.zeros(len(z))
    for camera in np.unique(view.table.cameras[searched]):
        rows = np.flatnonzero(searched & (view.table.cameras == camera))
        probabilities[rows] = _of_camera(log_ratios[rows], units[rows])
    n = int(searched.sum())
    likely = bool(z[searched].min() < calibration.threshold(n, FALSE_ACCEPTS))
    return Judgement(probabilities, Presence(likely, FALSE_ACCEPTS, n))


def _relative(view: View, distances: Floats, others: Bools) -> Floats:
    """Divide distances by the median of their camera, or of all where a camera has few.

    The whole gallery gives the medians, whatever part of it is searched. Labelled sightings are
    left out where enough others are there: the model may have been fitted on them, and what a
    metric was fitted on is farther from everybody than other sightings are.
    """
    unlabelled = others & (view.persons == "")
    overall = float(np.median(distances[_enough(unlabelled, others)]))
    units = np.full(len(distances), overall)
    for camera in view.cameras:
        own = view.table.cameras == camera
        reference = _enough(unlabelled & own, others & own)
        if reference.sum() >= _MIN_REFERENCE:
            units[own] = np.median(distances[reference])
    relative: Floats = distances / np.maximum(units, np.finfo(np.float64).tiny)
    return relative


def _enough(preferred: Bools, instead: Bools) -> Bools:
    return preferred if preferred.sum() >= _MIN_REFERENCE else instead


def _of_camera(log_ratios: Floats, units: NDArray[np.str_]) -> Floats:
    """Probabilities of one camera's sightings; those of a known person or track are added up."""
    from resight.evaluation.calibration import posterior

    single = posterior(log_ratios[None, :], PRESENT)[0]
    names, codes = np.unique(units, return_inverse=True)
    summed = np.bincount(codes, weights=single, minlength=len(names))[codes]
    return np.where(units == "", single, summed)
