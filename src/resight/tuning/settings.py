"""What an automatic choice chooses: a setting, and the parts whose distances it adds up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from resight.tuning.candidates import Candidate, PolynomialCandidate

# KNFST beside k-XQDA has the kernel of its authors, whatever k-XQDA was given.
_KNFST = Candidate("rbf", 1.0, "identity", 0.0)
_XQDA = Candidate("linear", 1.0, "identity", 1e-3)


@dataclass(frozen=True)
class Part:
    """One fitted learner among those whose distances are added.

    Attributes
    ----------
    learner : "kxqda", "xqda" or "knfst"
    candidate : Candidate
        Its kernel and regulariser.
    weights : tuple of float
        One for each descriptor.
    kernel_mean : bool
        Whether each descriptor has its own kernel (their weighted mean is taken) or all have one.
    """

    learner: str
    candidate: Candidate
    weights: tuple[float, ...]
    kernel_mean: bool = False


@dataclass(frozen=True)
class Setting:
    """Everything that is chosen.

    Attributes
    ----------
    candidate : Candidate
        Kernel and regulariser of k-XQDA.
    weights : tuple of float
        One for each descriptor, not negative.
    fusion : "concatenate", "kernel-mean" or "distance-sum"
        One k-XQDA on all descriptors side by side, one on the mean of their kernels, or one on
        each descriptor, distances added.
    variant : str
        Which version of the descriptors: "plain", or "mirror" averages over mirror images.
    xqda, knfst : float
        Weights of the distances of further learners; those of k-XQDA have weight 1.
    per_pair : bool
        One metric for each pair of cameras that has enough people, instead of one for all.
    """

    candidate: Candidate
    weights: tuple[float, ...]
    fusion: str = "concatenate"
    variant: str = "plain"
    xqda: float = 0.0
    knfst: float = 0.0
    per_pair: bool = False

    def parts(self) -> Iterator[tuple[float, Part]]:
        """Yield everything that is added up, with its weight."""
        mean = self.fusion == "kernel-mean"
        if self.fusion == "distance-sum":
            for i, weight in enumerate(self.weights):
                if weight:
                    alone = tuple(float(j == i) for j in range(len(self.weights)))
                    yield weight / sum(self.weights), Part("kxqda", self.candidate, alone)
        else:
            yield 1.0, Part("kxqda", self.candidate, self.weights, mean)
        if self.xqda:
            yield self.xqda, Part("xqda", _XQDA, self.weights)
        if self.knfst:
            yield self.knfst, Part("knfst", _KNFST, self.weights, mean)

    def as_dict(self) -> dict[str, Any]:
        """Return the setting in plain types."""
        rest = {k: v for k, v in asdict(self).items() if k not in ("candidate", "weights")}
        return {**self.candidate.params(), "weights": list(self.weights), **rest}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Setting:
        """Undo `as_dict`."""
        rest = dict(given)
        names = ("kernel", "width", "reg_form", "reg")
        made = Candidate if "degree" not in rest else PolynomialCandidate
        own = (*names, "degree") if "degree" in rest else names
        candidate = made(**{name: rest.pop(name) for name in own})
        return cls(candidate, tuple(rest.pop("weights")), **rest)
