"""What an explanation says: parts of a distance, beside what is usual between people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.explanation.attribution import EXACT, INTEGRATED, LEFT_OUT
from resight.explanation.parts import N_BANDS, OCCLUSION, Partition

Floats = NDArray[np.float64]

SCHEMA = "resight.explanation/1"
PEOPLE = "different people"  # what parts are compared with, where such people are known
_REGIONS = {"head": slice(0, 1), "upper-body": slice(1, 4), "leg": slice(4, 7), "feet": slice(7, 8)}
_LOW, _HIGH = 0.75, 1.25  # of what is usual: between them lies "usual"
_LEAST_USUAL = 0.1  # of the mean part: below it a ratio would say nothing

_WORDS = {
    EXACT: "The metric is linear in the features, so the parts add up to the distance exactly.",
    INTEGRATED: (
        "The kernel is not linear: gradients are integrated along the straight path "
        "from identical sightings to these two, so the parts add up to the distance."
    ),
    OCCLUSION: (
        "This is an occlusion: each strip was covered with grey in both images, and each part is "
        "the drop in distance when one descriptor sees that. Parts interact, so these drops need "
        "not add up to the distance."
    ),
    LEFT_OUT: (
        "Each part is the drop in distance when both sightings look the same there; parts "
        "interact, so these drops need not add up to the distance."
    ),
}


@dataclass(frozen=True)
class Share:
    """What one band, channel or the whole adds to the distance.

    Attributes
    ----------
    label : str
    contribution : float
        In units of the distance; negative where a difference counts for the same person.
    share : float
        Part of the distance, as a fraction.
    level : float or None
        Contribution over what is usual for this part.
    verdict : str
        "alike", "usual" or "different"; empty where nothing is known to compare with.
    """

    label: str
    contribution: float
    share: float
    level: float | None
    verdict: str


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why two sightings are as far apart as they are.

    Attributes
    ----------
    distance : float
        The learned distance that is explained.
    method : str
        "exact", "integrated gradients", "leave part out" or "occlusion"; see
        `resight.explanation`.
    partition : Partition
        What the parts are.
    contributions : array (n_parts,)
        What each part adds to the distance.
    usual : array (n_pairs, n_parts) or None
        Contributions of some pairs of different people. What is usual is the mean size: signs
        would cancel where a metric uses a part now for and now against.
    """

    distance: float
    method: str
    partition: Partition
    contributions: Floats
    usual: Floats | None = None

    @property
    def remainder(self) -> float:
        """What the parts leave of the distance: nothing but round-off, or "leave part out"."""
        return self.distance - float(self.contributions.sum())

    @property
    def whole(self) -> Share:
        """The distance itself."""
        return self._shares(["distance"], lambda parts: parts.sum(axis=-1, keepdims=True))[0]

    @property
    def bands(self) -> tuple[Share, ...]:
        """Strips of equal height, from the top of the image to its bottom."""
        labels = [f"{100 * i // N_BANDS}-{100 * (i + 1) // N_BANDS}%" for i in range(N_BANDS)]
        return self._shares(labels, self.partition.by_band)

    @property
    def channels(self) -> tuple[Share, ...]:
        """Colours and textures, in the order of the descriptors."""
        labels = [channel.title for channel in self.partition.channels]
        return self._shares(labels, self.partition.by_channel)

    @property
    def method_in_words(self) -> str:
        """How the distance was divided, for a reader."""
        return _WORDS[self.method]

    @property
    def summary(self) -> str:
        """The whole in one sentence, which also stands for the picture."""
        if self.method == OCCLUSION:
            most = max(self.bands, key=lambda band: abs(band.contribution))
            change = "lowers" if most.contribution >= 0 else "raises"
            return (
                f"Covering the strip at {most.label} of the height in both images {change} the "
                f"distance by {percent(abs(most.share))}, more than any other strip."
            )
        if self.usual is None:
            most = max(self.bands, key=lambda band: band.contribution)
            where = f"the strip at {most.label} of the height"
            return f"{percent(most.share)} of the distance comes from {where}."
        regions = sorted(self.regions, key=lambda region: region.level or 0.0)
        told = [f"{percent(alike(self.whole.level or 0.0))} alike (two people: usually 50%)"]
        for words, some in (
            ("very alike", [one for one in regions if (one.level or 0.0) < _LOW][:2]),
            ("less alike", [one for one in regions[::-1] if (one.level or 0.0) > _HIGH][:2]),
        ):
            parts = [f"{one.label} ({percent(alike(one.level or 0.0))})" for one in some]
            told += [f"{words}: {', '.join(parts)}"] if parts else []
        return "; ".join(told).capitalize() + "."

    @property
    def regions(self) -> tuple[Share, ...]:
        """Colour, texture and edges of the head, upper body, legs and feet."""
        kinds = np.array([self.partition.channels[c].kind for c in self.partition.channel])
        names, columns = [], []
        for kind in dict.fromkeys(kinds.tolist()):
            for region, rows in _REGIONS.items():
                names.append(f"{region} {kind}")
                columns.append((kinds == kind) * self.partition.bands[:, rows].sum(axis=1))
        gather = np.array(columns).T  # (n_parts, n_regions)
        return self._shares(names, lambda parts: np.asarray(parts @ gather))

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, the JSON form."""
        partition = self.partition
        usual = None if self.usual is None else abs(self.usual).mean(axis=0)
        parts = [
            {
                "descriptor": channel.descriptor,
                "channel": channel.name,
                "rows": _extent(spread),
                "contribution": float(value),
                "usual": None if usual is None else float(usual[i]),
            }
            for i, (value, spread) in enumerate(
                zip(self.contributions, partition.bands, strict=True)
            )
            for channel in [partition.channels[partition.channel[i]]]
        ]
        return {
            "schema": SCHEMA,
            "distance": self.distance,
            "method": self.method,
            "method_in_words": self.method_in_words,
            "remainder": self.remainder,
            "compared": "" if self.usual is None else PEOPLE,
            "usual_pairs": 0 if self.usual is None else len(self.usual),
            "summary": self.summary,
            "whole": asdict(self.whole),
            "bands": [asdict(band) for band in self.bands],
            "channels": [asdict(channel) for channel in self.channels],
            "parts": parts,
        }

    def _shares(self, labels: list[str], gather: Callable[[Floats], Floats]) -> tuple[Share, ...]:
        values = gather(self.contributions)
        shares = (values / self.distance if self.distance else np.zeros_like(values)).tolist()
        levels: list[float | None] = [None] * len(values)
        if self.usual is not None:
            usual = abs(gather(self.usual)).mean(axis=0)
            floor = max(_LEAST_USUAL * usual.mean(), np.finfo(float).tiny)
            levels = (values / np.maximum(usual, floor)).tolist()
        verdicts = [_verdict(level) for level in levels]
        return tuple(map(Share, labels, values.tolist(), shares, levels, verdicts))


def _verdict(level: float | None) -> str:
    if level is None:
        return ""
    return "alike" if level < _LOW else "different" if level > _HIGH else "usual"


def alike(level: float) -> float:
    """Return how alike a part is, from 0 to 1: one half is usual of two different people."""
    return 1.0 / (1.0 + max(level, 0.0))


def percent(fraction: float) -> str:
    """Write a fraction as a percentage that is short and never plainly zero."""
    value = 100.0 * fraction
    return f"{value:.0f}%" if value == 0 or abs(value) >= 1 else f"{value:.1g}%"


def _extent(spread: Floats) -> list[float]:
    """First and last band that a part looks at, as fractions of the height."""
    bands = np.flatnonzero(spread > 0)
    return [float(bands[0] / N_BANDS), float((bands[-1] + 1) / N_BANDS)]
