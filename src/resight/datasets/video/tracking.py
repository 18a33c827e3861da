"""Following people from frame to frame, so that the boxes of one passage share a track.

Boxes are assigned to predicted positions by their overlap, the certain ones first and then, to
tracks that would be lost otherwise, the doubtful ones: people behind others score low but are no
less there (Y. Zhang et al., "ByteTrack: Multi-Object Tracking by Associating Every Detection Box",
ECCV 2022). Positions are predicted at constant velocity by an alpha-beta filter, in seconds, so
that skipped frames and a varying frame rate do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from resight.datasets.video.frames import Box
from resight.images.colour import Floats

_GAP = 1.0  # seconds after which somebody who is not seen has left
_OVERLAP = 0.2  # intersection over union from which a certain box may be the predicted one ...
_DOUBTFUL = 0.5  # ... and a doubtful box, which is a false detection more often
_ALPHA, _BETA = 0.5, 0.05  # how far a new box corrects position and velocity
_SIZE = 0.3  # ... and size, which swings with every step


@dataclass
class _Track:
    name: str
    centre: Floats  # (2,): x and y
    size: Floats  # (2,): width and height
    seen: float
    velocity: Floats = field(default_factory=lambda: np.zeros(2))  # pixels a second
    n_boxes: int = 1

    def at(self, time: float) -> Floats:
        """Where the person is expected: left, top, width, height."""
        centre = self.centre + self.velocity * (time - self.seen)
        return np.concatenate([centre - self.size / 2, self.size])

    def correct(self, box: Floats, time: float) -> None:
        """Move towards where the person was found."""
        passed = time - self.seen
        expected = self.centre + self.velocity * passed
        error = box[:2] + box[2:] / 2 - expected
        self.n_boxes += 1
        if passed > 0:  # the first boxes tell most of the velocity, as in a running mean
            self.velocity += max(_BETA, 1 / self.n_boxes) * error / passed
        self.centre, self.seen = expected + _ALPHA * error, time
        self.size += _SIZE * (box[2:] - self.size)


class Tracker:
    """Names the boxes of one camera, frame after frame.

    Only boxes of a score from `certain` up may begin a track; lower ones only continue one.

    >>> tracker = Tracker()
    >>> first = tracker.follow([Box(0, 0, 40, 90)], time=0.0)
    >>> second = tracker.follow([Box(5, 0, 40, 90), Box(200, 0, 40, 90)], time=0.1)
    >>> [box.track for box in first], [box.track for box in second]
    (['1'], ['1', '2'])
    """

    def __init__(self, certain: float = 0.5) -> None:
        self.certain = certain
        self._tracks: list[_Track] = []
        self._names = map(str, count(1))
        self._last_frame = -np.inf

    @property
    def live(self) -> set[str]:
        """The tracks that may still go on."""
        return {track.name for track in self._tracks}

    def follow(self, boxes: list[Box], time: float) -> list[Box]:
        """Return the boxes of a frame, each with its track; doubtful ones without are left out.

        `time` is that of the frame, in seconds; later than that of the frame before.
        """
        found = np.array([box[:4] for box in boxes], float).reshape(-1, 4)
        score = np.array([box.score for box in boxes], float)
        certain = np.flatnonzero(score >= self.certain)
        pairs = self._assign(self._tracks, found, certain, time, _OVERLAP)
        taken = {id(track) for track, _ in pairs}
        # Who was hidden before this frame does not come back as a doubtful box.
        waiting = [t for t in self._tracks if id(t) not in taken and t.seen == self._last_frame]
        pairs += self._assign(waiting, found, np.flatnonzero(score < self.certain), time, _DOUBTFUL)
        names = {}
        for track, row in pairs:
            track.correct(found[row], time)
            names[row] = track.name
        for row in [row for row in certain.tolist() if row not in names]:
            centre, size = found[row, :2] + found[row, 2:] / 2, found[row, 2:].copy()
            self._tracks.append(_Track(next(self._names), centre, size, time))
            names[row] = self._tracks[-1].name
        self._tracks = [track for track in self._tracks if time - track.seen <= _GAP]
        self._last_frame = time
        return [box._replace(track=names[row]) for row, box in enumerate(boxes) if row in names]

    @staticmethod
    def _assign(
        tracks: list[_Track], found: Floats, rows: NDArray[np.intp], time: float, least: float
    ) -> list[tuple[_Track, int]]:
        """Pair tracks with rows of `found` so that the boxes overlap most in sum."""
        from scipy.optimize import linear_sum_assignment

        if not tracks or not len(rows):
            return []
        overlaps = overlap(np.array([track.at(time) for track in tracks]), found[rows])
        overlaps[overlaps < least] = 0  # no good pair is given up for two bad ones
        pairs = zip(*linear_sum_assignment(overlaps, maximize=True), strict=True)
        return [(tracks[i], int(rows[j])) for i, j in pairs if overlaps[i, j] > 0]


def overlap(a: Floats, b: Floats) -> Floats:
    """Intersection over union of boxes (n, 4) and (m, 4), as an array (n, m)."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum((a[:, :2] + a[:, 2:])[:, None], (b[:, :2] + b[:, 2:])[None])
    shared = np.prod(np.maximum(high - low, 0), axis=2)
    areas = np.prod(a[:, 2:], axis=1)[:, None] + np.prod(b[:, 2:], axis=1)[None]
    return shared / np.maximum(areas - shared, np.finfo(float).tiny)
