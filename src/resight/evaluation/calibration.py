"""From distances to probabilities, and to the answers found, absent and unsure.

Everything is learned from rankings of people the metric was not fitted on. Two models share the
work. Among the people of a gallery, the distances themselves decide: in units of the median
distance between query and gallery, z = d / median(d), Bayes' rule gives sighting i the share
r(z_i) / sum_j r(z_j), where r is the ratio of the densities of z for the query's person and for a
stranger. For distances like sums of squares (Gamma densities) log r is linear in z and log z.
Whether the person is there at all is told by `resight.evaluation.presence`. Probabilities are the
product of both. This module is what a search needs; `calibration_fitting` learns it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError
from resight.evaluation.presence import Expected, Strangers, errors_allowed, gap, logistic, nearest
from resight.saving import SavableMixin

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Bools = NDArray[np.bool_]
Answer = Literal["found", "unsure", "absent"]

MIN_PEOPLE = 20
_SAME = 1e-4  # of the variance of embeddings: what rounding of stored descriptors may change
_BLOCK = 4096


@dataclass(frozen=True)
class HeldOut:
    """A ranking of people the metric was not fitted on."""

    distances: Floats  # (n_queries, n_gallery)
    same: Bools  # (n_queries, n_gallery), whether query and gallery sighting show one person
    camera: str = ""  # of the queries
    rows: NDArray[np.intp] | None = None  # of the queries, among the sightings learned from


class Rates(NamedTuple):
    """What the answers promise, and the prior probability that a camera has seen the person."""

    prior: float = 0.5
    false_accepts: float = 0.1
    false_rejects: float = 0.1

    def check(self) -> Rates:
        """Refuse what is no rate."""
        for name, value in self._asdict().items():
            if isinstance(value, bool) or not 0 < value < 1:
                raise InputError(f"{name}={value}; give a rate between 0 and 1, such as 0.1")
        return self


class Evidence(NamedTuple):
    """What is known of each of some queries, arrays (n,); see `Expected` and `Calibration`."""

    chance: Floats
    miss: Floats
    log_odds: Floats
    share: Floats
    tolerated: Floats

    def probability(self, prior: float) -> Floats:
        """Return the probability of the first unit."""
        return self.share * present(self.log_odds, prior)


@dataclass(eq=False)
class Calibration(SavableMixin):
    """What distances of one model mean; what is empty is not known."""

    state_version: ClassVar[int] = 4

    # (a, b): P(same person | distance d) = 1 / (1 + exp(a + b log d)).
    pair: tuple[float, float]
    # (a, b, c): log r(z) = c - a z - b log z, see above.
    choice: tuple[float, float, float]
    n_people: int  # that it was learned from
    # As in `Strangers`; empty where an older version wrote it, which cannot tell who is absent.
    quantiles: Floats = field(default_factory=lambda: np.empty(0))
    steepness: float = 1.0
    mates: Floats = field(default_factory=lambda: np.empty(0))
    spreads: Floats = field(default_factory=lambda: np.empty(0))
    # How held-out people were judged, with their person in the gallery and without: the fields of
    # `Evidence`, and whether the first unit was right, (2, n_queries, 6).
    checks: Floats = field(default_factory=lambda: np.empty(0))
    # Of these, (n_queries,): cameras, places among the sightings learned from, pixels of height.
    cameras: NDArray[Any] = field(default_factory=lambda: np.empty(0, str))
    rows: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.intp))
    heights: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.intp))
    # Mean and main directions (k, n_features) of the training sightings' descriptors, and how
    # strange (2,) sightings that were not learned from may be, see `strangeness`.
    centre: Floats32 = field(default_factory=lambda: np.empty(0, np.float32))
    basis: Floats32 = field(default_factory=lambda: np.empty((0, 0), np.float32))
    limits: Floats = field(default_factory=lambda: np.empty(0))
    # Embeddings of the sightings that the model learned from, of a few dimensions, (n, r).
    trained: Floats32 = field(default_factory=lambda: np.empty((0, 0), np.float32))

    @classmethod
    def migrate(cls, state: dict[str, Any], version: int) -> dict[str, Any]:
        """Before 4 other evidence decided about presence: probabilities stay, answers do not."""
        kept = "pair", "choice", "n_people", "trained"
        return {name: state[name] for name in kept if name in state}

    def probability(self, distances: ArrayLike) -> Floats:
        """Probability that two sightings show one person, by their distance alone.

        As many pairs of one person as of two are assumed; a search knows the other candidates.
        """
        a, b = self.pair
        return logistic(-(a + b * np.log(positive(distances))))

    def log_ratios(self, z: ArrayLike) -> Floats:
        """Return log r(z): evidence for the query's person of relative distances."""
        a, b, c = self.choice
        relative = positive(z)
        return np.asarray(c - a * relative - b * np.log(relative))

    def relative_at(self, log_ratio: float) -> float:
        """Return the relative distance z at which log r(z) has fallen to a value.

        At 0 two sightings are as likely of one person as of two.
        """
        z = np.geomspace(1e-12, 1e3, 4096)
        return float(z[np.argmax(self.log_ratios(z) < log_ratio)])

    def shares(self, distances: ArrayLike) -> Floats:
        """Return the probability of each unit of a gallery if the person is there, adding up to 1.

        `distances` (n_queries, n_units) are infinite where a unit does not count.
        """
        d = np.atleast_2d(np.asarray(distances, np.float64))
        counted = np.isfinite(d)
        median = np.nanmedian(np.where(counted, d, np.nan), axis=1, keepdims=True)
        z = np.where(counted, d, 1.0) / np.maximum(median, np.finfo(np.float64).tiny)
        log_ratios = np.where(counted, self.log_ratios(z), -np.inf)
        weights = np.exp(log_ratios - log_ratios.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    @property
    def decides(self) -> bool:
        """Whether it can tell who is absent."""
        return len(self.checks) > 0

    @property
    def strangers(self) -> Strangers:
        """What distances of held-out people looked like."""
        return Strangers(self.quantiles, self.steepness, self.mates, self.spreads, self.n_people)

    def evidence(self, distances: Floats, expected: Expected) -> Evidence:
        """Judge queries by distances (n_queries, n_units), infinite where a unit does not count."""
        g = gap(nearest(np.log(positive(distances))))
        first = self.shares(distances)[np.arange(len(g)), distances.argmin(axis=1)]
        told = expected.chance(g), expected.miss(g), expected.log_odds(g)
        return Evidence(*told, first, expected.tolerated(g))

    def answers(self, evidence: Evidence, rates: Rates) -> NDArray[np.str_]:
        """Answer for each query: found, unsure or absent."""
        with_person, without = self._checked()
        limit = self._limit(without.chance, rates.false_accepts)
        likely = present(evidence.log_odds, rates.prior) >= 0.5  # decides where both hold
        found = likely & (evidence.chance <= limit)
        found &= evidence.tolerated >= self._least_tolerated(limit, rates.prior)
        absent = ~likely & (evidence.miss <= self._limit(with_person.miss, rates.false_rejects))
        return np.where(found, "found", np.where(absent, "absent", "unsure"))

    def groups(self) -> dict[str, Bools]:
        """Name the held-out queries of each camera, and thirds of them by the crops' heights."""
        found = {name: self.cameras == name for name in np.unique(self.cameras).tolist()}
        if len(self.heights) and self.heights.min() > 0:
            low, high = np.quantile(self.heights, (1 / 3, 2 / 3), method="lower").tolist()
            third = np.digitize(self.heights, (low, high), right=True)
            names = f"up to {low}", f"of {low + 1} to {high}", f"above {high}"
            if low < high:
                found |= {f"crops {one} pixels": third == i for i, one in enumerate(names)}
        return found

    def measured(self, rates: Rates, some: Bools | None = None) -> dict[str, float]:
        """Return how often each answer was right about (some) held-out people, at the prior."""
        some = np.ones(len(self.cameras), bool) if some is None else some
        n = int(some.sum())
        told = np.concatenate([self.answers(one, rates)[some] for one in self._checked()])
        right = np.concatenate([self.checks[0][some, -1] > 0, np.zeros(n, bool)])
        weights = np.repeat([rates.prior, 1.0 - rates.prior], n)
        rate = {}
        for answer, true in (("found", right), ("absent", np.repeat([False, True], n))):
            given = weights * (told == answer)
            if given.sum() > 0:
                rate[answer] = float(given @ true / given.sum())
        return rate

    def outside(self, features: NDArray[Any]) -> Bools:
        """Tell which sightings look like nothing that was learned from, by descriptors (n, d)."""
        if not len(self.centre):
            return np.zeros(len(features), bool)
        strange = strangeness(features, self.centre, self.basis) > self.limits
        return np.asarray(strange.any(axis=1))

    def knows(self, embeddings: Floats32) -> Bools:
        """Tell which embeddings (n, r) are those of sightings that the model learned from."""
        found = np.zeros(len(embeddings), bool)
        width = self.trained.shape[1]
        typical = float(self.trained.var(axis=0).sum())
        for start in range(0, len(embeddings), _BLOCK):
            part = embeddings[start : start + _BLOCK, :width].astype(np.float64)
            D = (part**2).sum(1)[:, None] + (self.trained**2).sum(1) - 2.0 * part @ self.trained.T
            found[start : start + _BLOCK] = D.min(axis=1) <= _SAME * typical
        return found

    def _checked(self) -> tuple[Evidence, Evidence]:
        with_person, without = (Evidence(*part.T[:-1]) for part in self.checks)
        return with_person, without

    def _limit(self, held_out: Floats, rate: float) -> float:
        """Return the simulated chance that a part `rate` of held-out people really fell below."""
        margin = float(np.sqrt(rate * (1.0 - rate) / self.n_people))  # few err towards unsure
        return float(np.quantile(held_out, max(rate - margin, rate / 2)))

    def _least_tolerated(self, limit: float, prior: float) -> float:
        """Return the odds of absence that `found` must tolerate, or what held-out people needed."""
        odds, n = (1.0 - prior) / prior, self.checks.shape[1]
        chance, tolerated = (
            np.concatenate([getattr(one, name) for one in self._checked()])
            for name in ("chance", "tolerated")
        )
        people = np.repeat([1.0, odds], n) * self.n_people / n * (chance <= limit)
        right = people * np.append(self.checks[0][:, -1], np.zeros(n))
        order = np.argsort(-tolerated, kind="stable")
        accepted, correct = np.cumsum(people[order]), np.cumsum(right[order])
        enough = np.flatnonzero((correct > 0) & (accepted - correct <= errors_allowed(correct)))
        return max(odds, float(tolerated[order][enough[-1]])) if len(enough) else np.inf


def require_people(n_people: int) -> None:
    """Refuse too few people for a calibration."""
    if n_people < MIN_PEOPLE:
        raise InputError(
            f"calibration needs at least {MIN_PEOPLE} people seen by two cameras, there "
            f"are {n_people}; label {MIN_PEOPLE - n_people} more"
        )


def present(log_odds: ArrayLike, prior: float) -> Floats:
    """Return the probability of presence, from its log-odds at even prior odds."""
    return logistic(np.asarray(log_odds) + np.log(prior / (1.0 - prior)))


def strangeness(features: NDArray[Any], centre: Floats32, basis: Floats32) -> Floats:
    """Tell how descriptors (n, d) differ from those of training sightings, (n, 2).

    Their squared distance from the centre, and which part of it the main directions (k, d) of the
    training sightings leave over: a picture of something else goes another way.
    """
    Z = np.asarray(features, np.float32) - centre
    lengths = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
    explained = np.square(Z @ basis.T, dtype=np.float64).sum(axis=1)
    return np.stack([lengths, 1.0 - explained / np.maximum(lengths, np.finfo(float).tiny)], axis=1)


def positive(distances: ArrayLike) -> Floats:
    """Return distances in float64, none of them zero."""
    return np.maximum(np.asarray(distances, dtype=np.float64), np.finfo(np.float64).tiny)
