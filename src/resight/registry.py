"""The learners: one line each, from which everything that lists learners derives.

That is what `resight` exports, names on the command line and in tables, the classes of model files,
the common tests and the check of docs/learners.md. It stands above `learners` and `tuning`, since
it names classes of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from resight.errors import InputError, unknown_name

if TYPE_CHECKING:
    from resight.learners._base import MetricLearner


@dataclass(frozen=True)
class LearnerSpec:
    """How a named learner is made, and what input it gets."""

    name: str  # on the command line
    title: str  # in tables
    module: str  # where the class lives
    class_name: str  # which `resight` exports and model files name
    normalize: bool = True  # whether descriptors are block-normalised first
    params: dict[str, Any] = field(default_factory=dict)  # that differ from the class's defaults
    effort: int = 0  # seconds; those that iterate take minutes, the slowest has most
    labels: bool = True  # otherwise sightings of unknown people count as well

    def normalizes(self, params: Mapping[str, Any]) -> bool:
        """Whether descriptors are block-normalised first; chi-square kernels need them raw."""
        from resight.kernels import NON_NEGATIVE

        return self.normalize and params.get("kernel") not in NON_NEGATIVE

    def make(self, **changes: Any) -> MetricLearner:
        """Make a new learner; unknown parameters and wrong values are refused."""
        from sklearn.utils._param_validation import InvalidParameterError

        learner: MetricLearner = getattr(import_module(self.module), self.class_name)()
        allowed = learner.get_params()
        for key in changes:
            if key not in allowed:
                raise unknown_name(f"parameter of learner {self.name!r}", key, allowed)
        learner.set_params(**{**self.params, **changes})
        try:
            learner._validate_params()
        except InvalidParameterError as error:
            raise InputError(f"learner {self.name!r}: {error}") from None
        return learner


AUTO = "auto"
LINEAR_IRS = {"kernel": "linear", "reg": 0.5}  # a flatter spectrum needs more of a ridge

LEARNERS: dict[str, LearnerSpec] = {
    spec.name: spec
    for spec in (
        LearnerSpec("euclidean", "Euclidean", "resight.learners.euclidean", "Euclidean"),
        LearnerSpec("kxqda", "k-XQDA", "resight.learners.kxqda", "KXQDA"),
        LearnerSpec(AUTO, "auto k-XQDA", "resight.tuning.auto", "AutoKXQDA", False),
        LearnerSpec("xqda", "XQDA", "resight.learners.xqda", "XQDA"),
        LearnerSpec("xqda-raw", "XQDA, raw descriptors", "resight.learners.xqda", "XQDA", False),
        LearnerSpec("kissme", "KISSME", "resight.learners.kissme", "KISSME"),
        LearnerSpec("kkissme", "k-KISSME", "resight.learners.kissme", "KernelKISSME"),
        LearnerSpec("lfda", "LFDA", "resight.learners.lfda", "LFDA"),
        LearnerSpec("klfda", "kLFDA", "resight.learners.lfda", "KernelLFDA"),
        LearnerSpec("mfa", "MFA", "resight.learners.mfa", "MFA"),
        LearnerSpec("kmfa", "kMFA", "resight.learners.mfa", "KernelMFA"),
        LearnerSpec("nfst", "NFST", "resight.learners.nfst", "NFST"),
        LearnerSpec("knfst", "KNFST", "resight.learners.nfst", "KernelNFST"),
        LearnerSpec("nk3ml", "NK3ML", "resight.learners.nk3ml", "NK3ML"),
        LearnerSpec("irs", "IRS", "resight.learners.irs", "IRS", params=LINEAR_IRS),
        LearnerSpec("kirs", "kernel IRS", "resight.learners.irs", "IRS"),
        LearnerSpec("mlapg", "MLAPG", "resight.learners.mlapg", "MLAPG", False, {"scale": None}, 3),
        LearnerSpec("ldml", "LDML", "resight.learners.ldml", "LDML", effort=3),
        LearnerSpec("camel", "CAMEL", "resight.learners.camel", "CAMEL", effort=1, labels=False),
        LearnerSpec("lmnn", "LMNN", "resight.learners.lmnn", "LMNN", effort=2),
        LearnerSpec("itml", "ITML", "resight.learners.itml", "ITML", effort=1),
    )
}


def learner_spec(name: str) -> LearnerSpec:
    """Return the learner of that name."""
    if name not in LEARNERS:
        raise unknown_name("learner", name, LEARNERS)
    return LEARNERS[name]
