"""Explaining distances of a model: their parts, beside what is usual between different people."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError
from resight.explanation import attribution
from resight.explanation.attribution import LEFT_OUT
from resight.explanation.parts import N_BANDS, OCCLUSION, Partition, partition_for
from resight.images import read
from resight.kernels import Floats, inner_products

Image = Path | str | NDArray[np.uint8]

SCHEMA = "resight.explanation/1"
PEOPLE = "different people"  # what parts are compared with, where such people are known
_REGIONS = {"head": slice(0, 1), "upper-body": slice(1, 4), "leg": slice(4, 7), "feet": slice(7, 8)}
_LOW, _HIGH = 0.75, 1.25  # of what is usual: between them lies "usual"
N_PAIRS = 24  # of different people, to tell what is usual
_FEWER_PAIRS = 4  # where one pair takes as long as all of them do elsewhere
_FEWEST_PAIRS = 4
_SEED = 0
_SAME = 1e-5  # relative: float32 copies of one row
_ADDS_UP = 1e-4  # relative: parts that miss the distance by more are not shown as its parts
_LEAST_USUAL = 0.1  # of the mean part: below it a ratio would say nothing

# How the distance was divided, by the method's name.
_WORDS = json.loads(Path(__file__).with_name("methods.json").read_text("utf-8"))


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
        return self._shares(["distance"], np.ones((len(self.contributions), 1)))[0]

    @property
    def bands(self) -> tuple[Share, ...]:
        """Strips of equal height, from the top of the image to its bottom."""
        labels = [f"{100 * i // N_BANDS}-{100 * (i + 1) // N_BANDS}%" for i in range(N_BANDS)]
        return self._shares(labels, self.partition.bands)

    @property
    def channels(self) -> tuple[Share, ...]:
        """Colours and textures, in the order of the descriptors."""
        labels = [channel.title for channel in self.partition.channels]
        return self._shares(labels, np.eye(len(labels))[self.partition.channel])

    @property
    def method_in_words(self) -> str:
        """How the distance was divided, for a reader."""
        return str(_WORDS[self.method])

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
        return self._shares(names, np.array(columns).T)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, the JSON form."""
        parts = []
        for i, place in enumerate(self.partition.channel.tolist()):
            channel = self.partition.channels[place]
            bands = np.flatnonzero(self.partition.bands[i]).tolist()
            parts.append(
                {
                    "descriptor": channel.descriptor,
                    "channel": channel.name,
                    "rows": [bands[0] / N_BANDS, (bands[-1] + 1) / N_BANDS],  # of the height
                    "contribution": float(self.contributions[i]),
                    "usual": None if self.usual is None else float(abs(self.usual[:, i]).mean()),
                }
            )
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

    def _shares(self, labels: list[str], belongs: Floats) -> tuple[Share, ...]:
        """Add up the parts that belong to each label, by how much: (n_parts, n_labels)."""
        values = self.contributions @ belongs
        shares = (values / self.distance if self.distance else np.zeros_like(values)).tolist()
        levels: list[float | None] = [None] * len(values)
        if self.usual is not None:
            usual = abs(self.usual @ belongs).mean(axis=0)
            floor = max(_LEAST_USUAL * usual.mean(), np.finfo(float).tiny)
            levels = (values / np.maximum(usual, floor)).tolist()
        verdicts = [_verdict(level) for level in levels]
        return tuple(map(Share, labels, values.tolist(), shares, levels, verdicts))


class Explainer:
    """Explains distances of a model; what is usual is found once and kept.

    Parameters
    ----------
    model : Model
        Fitted, with descriptors.
    references : array (n, n_features), optional
        Descriptors of sightings that tell what is usual between different people, such as some
        of a gallery. Those that the model learned from are left out, as far as it keeps its
        training sightings (kernel learners do): a metric holds people that it learned from much
        farther apart than new ones. Where nobody else is left, nothing is compared.
    persons : array (n,), optional
        Who is on them, so that pairs of one person are left out; empty text is unknown.

    Notes
    -----
    The features of the decomposition are those that the learner sees, after normalisation.
    """

    def __init__(
        self, model: Any, references: ArrayLike | None = None, persons: ArrayLike | None = None
    ) -> None:
        if not model.descriptors:
            raise InputError(
                "this model was trained on your own vectors, which have no known "
                "strips and channels, so it cannot explain images. Train a model on "
                "descriptors (resight fit)"
            )
        self.model = model
        self.partition = partition_for(model)
        self._references = None if references is None else np.asarray(references)
        self._persons = None if persons is None else np.asarray(persons)
        self._metric = attribution.metric_of(model)

    def explain(self, image_a: Image, image_b: Image) -> Explanation:
        """Explain the distance of two images or image files."""
        features = self.model.describe([image_a, image_b])
        return self.explain_features(features, lambda: [read(image_a), read(image_b)])

    def explain_features(
        self, features: ArrayLike, images: Callable[[], Sequence[NDArray[np.uint8]]] | None = None
    ) -> Explanation:
        """Explain the distance of two sightings, given as descriptors (2, n_features).

        A model with a network is explained by covering parts of the images, which `images` returns.
        """
        pair = np.asarray(features)
        if pair.shape != (2, len(self.partition.of_feature)):
            raise InputError(
                f"descriptors of shape {pair.shape}; explaining a pair needs two rows "
                f"of {len(self.partition.of_feature)} features"
            )
        distance = float(self.model.distances(pair[:1], pair[1:])[0, 0])
        if self.model.networks:
            if images is None:
                raise InputError("a model with a network is explained from images; give both")
            contributions = attribution.occlude(self.model, pair, images())
            return Explanation(distance, OCCLUSION, self.partition, contributions)
        contributions = self._divide(pair)
        adds_up = abs(float(contributions.sum()) - distance) <= _ADDS_UP * abs(distance)
        if self._metric.method != LEFT_OUT and not adds_up:
            # The learner works otherwise than thought.
            self._metric = attribution.opaque(self.model)
            contributions = self._divide(pair)
        return Explanation(distance, self._metric.method, self.partition, contributions, self.usual)

    def _divide(self, pair: NDArray[Any]) -> Floats:
        rows = self._metric.normalize(pair)
        return self._metric.divide(rows[:1], rows[1:], self.partition.of_feature)[0]

    @cached_property
    def usual(self) -> Floats | None:
        """Contributions of parts (n_pairs, n_parts) between different people, if any are known."""
        if self._references is None:
            return None
        rows, persons = self._metric.normalize(self._references), self._persons
        learned = _known(rows, self._metric.training_rows)
        if persons is not None:  # nor other sightings of people that it learned from
            learned |= np.isin(persons, persons[learned & (persons != "")])
            persons = persons[~learned]
        n_pairs = _FEWER_PAIRS if self._metric.method == LEFT_OUT else N_PAIRS
        first, second = _pairs(int((~learned).sum()), persons, n_pairs)
        if len(first) < _FEWEST_PAIRS:
            return None
        rows = rows[~learned]
        return self._metric.divide(rows[first], rows[second], self.partition.of_feature)


def _known(rows: Floats, training: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Tell which rows are training rows, by their products with one random direction."""
    if training is None:
        return np.zeros(len(rows), bool)
    direction = np.random.default_rng(_SEED).normal(size=(1, rows.shape[1]))
    new, old = inner_products(rows, direction), inner_products(training, direction)
    nearest = abs(new - old.T).min(axis=1)  # (n_rows, n_train) -> (n_rows,)
    return np.asarray(nearest <= _SAME * abs(old).max())


def _pairs(
    n_rows: int, persons: NDArray[Any] | None, n_pairs: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw rows of different people; without persons any two (nearly all are different)."""
    if n_rows < 2:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    first, second = np.random.default_rng(_SEED).integers(0, n_rows, (2, 8 * n_pairs))
    different = first != second
    if persons is not None:
        unknown = (persons[first] == "") | (persons[second] == "")
        different &= unknown | (persons[first] != persons[second])
    return first[different][:n_pairs], second[different][:n_pairs]


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
