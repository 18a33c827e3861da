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
        return {
            "kernel": self.kernel,
            "width": self.width,
            "reg_form": self.reg_form,
            "reg": self.reg,
        }


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

# Version `auto` of the tables, which is not measured yet: announced here before any measurement.
# AutoKXQDA uses the folds and repeats; mirror images and kernel means are not in its search yet.
AUTO_POOL = ("gog", "lomo", "lomo-dagger", "whos-dagger")
AUTO_MIRROR = (False, True)
AUTO_FUSIONS = ("concatenate", "kernel-mean", "distance-sum")
AUTO_MEMBERS = ("kxqda", "xqda", "knfst")
AUTO_FOLDS = 3
AUTO_REPEATS = 2
