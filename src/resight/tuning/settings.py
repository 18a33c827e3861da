"""What an automatic choice chooses: parts whose squared distances are added, with weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resight.tuning.candidates import KNFST_KERNEL, XQDA, Candidate

PLAIN = ("euclidean", "cosine")


@dataclass(frozen=True)
class Part:
    """One metric among those whose distances are added.

    "euclidean" and "cosine" learn nothing: the former is the distance of centred, normalised
    vectors, the latter of normalised ones. One kernel is that of the weighted descriptors side by
    side, one for each descriptor stand for their weighted sum; the first has the regulariser. With
    `blocks` every block has a metric of its own, and their distances are added.
    """

    learner: str  # "euclidean", "cosine", "kxqda" or "knfst"
    weights: tuple[float, ...]  # one for each descriptor
    kernels: tuple[Candidate, ...] = ()  # none where nothing is learned
    blocks: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the part in plain types."""
        kernels = [one.params() for one in self.kernels]
        own = {"learner": self.learner, "weights": list(self.weights), "kernels": kernels}
        return {**own, "blocks": True} if self.blocks else own

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Part:
        """Undo `as_dict`."""
        kernels = tuple(Candidate.of(one) for one in given["kernels"])
        blocks = bool(given.get("blocks", False))
        return cls(given["learner"], tuple(given["weights"]), kernels, blocks)


@dataclass(frozen=True)
class Setting:
    """Everything that is chosen; weights are in units of the mean distance of training rows."""

    parts: tuple[tuple[float, Part], ...]
    variant: str = "plain"  # of the descriptors; "mirror": averaged over mirror images

    @property
    def learns(self) -> bool:
        """Whether anything is learned; otherwise vectors are compared at full length."""
        return any(part.learner not in PLAIN for _, part in self.parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the setting in plain types."""
        parts = [{"weight": weight, **part.as_dict()} for weight, part in self.parts]
        return {"variant": self.variant, "parts": parts}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Setting:
        """Undo `as_dict`, that of resight 0.1 included."""
        if "parts" not in given:
            return _first_format(given)
        parts = tuple((float(one["weight"]), Part.from_dict(one)) for one in given["parts"])
        return cls(parts, given["variant"])

    def sentence(self, names: list[str] | None = None) -> str:
        """Tell the parts and the share of each in the sum of weights."""
        total = sum(weight for weight, _ in self.parts)
        words = [
            f"{100.0 * weight / total:.0f}% {_told(part, names)}"
            for weight, part in sorted(self.parts, key=lambda one: -one[0])
        ]
        mirrored = ", averaged over mirror images" if self.variant == "mirror" else ""
        return ", ".join(words) + mirrored


def _told(part: Part, names: list[str] | None) -> str:
    used = [i for i, weight in enumerate(part.weights) if weight]
    words = [names[i] if names else f"descriptor {i + 1}" for i in used]
    kernels = "+".join(dict.fromkeys(one.kernel for one in part.kernels))
    learner = {"kxqda": "k-XQDA", "knfst": "KNFST"}.get(part.learner, part.learner)
    if part.learner == "kxqda":
        learner += f" ({kernels}{', block by block' if part.blocks else ''})"
    return learner if len(part.weights) == 1 else f"{learner} of {'+'.join(words)}"


def _first_format(given: dict[str, Any]) -> Setting:
    """Read what version 0.1 chose: one kernel for all, and weights of members beside k-XQDA."""
    if given.get("per_pair"):
        raise KeyError("per_pair is no longer supported")
    own, weights = Candidate.of(given), tuple(map(float, given["weights"]))
    n, fusion = len(weights), given.get("fusion", "concatenate")
    parts: list[tuple[float, Part]] = []
    if fusion == "distance-sum":
        for i, weight in enumerate(weights):
            alone = tuple(float(j == i) for j in range(n))
            parts += [(weight / sum(weights), Part("kxqda", alone, (own,)))] if weight else []
    else:
        parts.append((1.0, Part("kxqda", weights, _each(own, n, fusion))))
    if given.get("xqda"):
        parts.append((given["xqda"], Part("kxqda", weights, (XQDA,))))
    if given.get("knfst"):
        parts.append((given["knfst"], Part("knfst", weights, _each(KNFST_KERNEL, n, fusion))))
    return Setting(tuple(parts), given.get("variant", "plain"))


def _each(kernel: Candidate, n: int, fusion: str) -> tuple[Candidate, ...]:
    return (kernel,) * (n if fusion == "kernel-mean" else 1)
