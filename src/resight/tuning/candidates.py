"""What may be chosen by cross-validation, fixed before any measurement on real images.

A change of these lists after the first measurement must be listed in docs/tables.md with the
figures before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """One setting of k-XQDA, from the simplest to the most specific in list order."""

    kernel: str
    width: float
    reg_form: str
    reg: float

    def params(self) -> dict[str, Any]:
        """Parameters for `resight.KXQDA`."""
        return {**self.kernel_params(), "reg_form": self.reg_form, "reg": self.reg}

    def kernel_params(self) -> dict[str, Any]:
        """Parameters for `resight.kernels.Kernel`."""
        return {"kernel": self.kernel, "width": self.width}


@dataclass(frozen=True)
class PolynomialCandidate(Candidate):
    """A polynomial kernel of another degree than 2."""

    degree: int = 3

    def kernel_params(self) -> dict[str, Any]:
        """Parameters for `resight.kernels.Kernel`."""
        return {**super().kernel_params(), "degree": self.degree}


# Strong to weak: equal scores go to the stronger regulariser and the simpler kernel.
_REGULARISERS = (
    ("kernel", 1e-2),
    ("kernel", 1e-3),
    ("kernel", 1e-4),
    ("relative", 1e-2),
    ("relative", 1e-3),
)
_PAPER = ("identity", 1e-7)
_KERNELS = (("linear", 1.0), ("poly", 1.0), ("rbf", 3.0), ("rbf", 1.0))

# Version `cv` of the paper's tables: 23 candidates, 3 folds over training people.
CV_FOLDS = 3
CV = tuple(
    Candidate(kernel, width, form, reg)
    for kernel, width in _KERNELS
    for form, reg in (*_REGULARISERS, *(() if kernel == "linear" else (_PAPER,)))
)

# Version `auto`: everything below was fixed before its first run on real images. See docs/auto.md
# for the order in which these are tried.
AUTO_POOL = ("gog", "lomo", "lomo-dagger", "whos-dagger")
AUTO_MIRROR = (False, True)
AUTO_FUSIONS = ("concatenate", "kernel-mean", "distance-sum")
AUTO_FOLDS = 3
AUTO_REPEATS = 2

# Kernels and regularisers: those of `cv` and cubic polynomials, 29 candidates.
_CUBIC = tuple(
    PolynomialCandidate("poly", 1.0, form, reg) for form, reg in (*_REGULARISERS, _PAPER)
)
AUTO_CANDIDATES = (
    *(one for one in CV if one.kernel != "rbf"),
    *_CUBIC,
    *(one for one in CV if one.kernel == "rbf"),
)
AUTO_WEIGHTS = (0.0, 0.5, 2.0)  # of one descriptor, times what it has, in at most two rounds
AUTO_MEMBER_WEIGHTS = (0.0, 0.5, 1.0)  # of each member beside k-XQDA, whose weight is 1
# A camera pair gets its own metric where this many people to learn from are seen by both.
AUTO_PAIR_PEOPLE = 20
