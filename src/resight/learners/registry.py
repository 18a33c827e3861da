"""Learners by the names used on the command line, in configurations and in the paper's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from resight.errors import InputError, unknown_name
from resight.kernels import NON_NEGATIVE

if TYPE_CHECKING:
    from resight.learners._base import MetricLearner


@dataclass(frozen=True)
class LearnerSpec:
    """How a named learner is made, and what input it gets.

    Attributes
    ----------
    name, title : str
        On the command line, and in tables.
    home : str
        "module:Class".
    normalize : bool
        Whether descriptors are block-normalised first.
    params : dict
        Parameters that differ from the class's defaults.
    """

    name: str
    title: str
    home: str
    normalize: bool = True
    params: dict[str, Any] = field(default_factory=dict)

    def normalizes(self, params: Mapping[str, Any]) -> bool:
        """Whether descriptors are block-normalised first; chi-square kernels need them raw."""
        return self.normalize and params.get("kernel") not in NON_NEGATIVE

    def make(self, **changes: Any) -> MetricLearner:
        """Make a new learner; unknown parameters and wrong values are refused."""
        from sklearn.utils._param_validation import InvalidParameterError

        module, name = self.home.split(":")
        cls = getattr(import_module(f"resight.{module}"), name)
        learner: MetricLearner = cls()
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

_ALL = (
    LearnerSpec("euclidean", "Euclidean", "learners.euclidean:Euclidean"),
    LearnerSpec("kxqda", "k-XQDA", "learners.kxqda:KXQDA"),
    LearnerSpec(AUTO, "auto k-XQDA", "tuning.auto:AutoKXQDA", normalize=False),
    LearnerSpec("xqda", "XQDA", "learners.xqda:XQDA"),
    LearnerSpec("xqda-raw", "XQDA, raw descriptors", "learners.xqda:XQDA", normalize=False),
    LearnerSpec("kissme", "KISSME", "learners.kissme:KISSME"),
    LearnerSpec("kkissme", "k-KISSME", "learners.kernel_kissme:KernelKISSME"),
    LearnerSpec("lfda", "LFDA", "learners.lfda:LFDA"),
    LearnerSpec("klfda", "kLFDA", "learners.kernel_lfda:KernelLFDA"),
    LearnerSpec("mfa", "MFA", "learners.mfa:MFA"),
    LearnerSpec("kmfa", "kMFA", "learners.kernel_mfa:KernelMFA"),
    LearnerSpec("nfst", "NFST", "learners.nfst:NFST"),
    LearnerSpec("knfst", "KNFST", "learners.kernel_nfst:KernelNFST"),
    LearnerSpec("mlapg", "MLAPG", "learners.mlapg:MLAPG", False, {"scale": None}),
    LearnerSpec("lmnn", "LMNN", "learners.lmnn:LMNN"),
    LearnerSpec("itml", "ITML", "learners.itml:ITML"),
)

ITERATIVE = ("itml", "lmnn", "mlapg")  # minutes where the others take seconds, ascending

LEARNERS: dict[str, LearnerSpec] = {spec.name: spec for spec in _ALL}


def learner_spec(name: str) -> LearnerSpec:
    """Return the learner of that name."""
    if name not in LEARNERS:
        raise unknown_name("learner", name, LEARNERS)
    return LEARNERS[name]


def parse_params(words: list[str]) -> dict[str, Any]:
    """Read ``name=value`` words; values are JSON where they parse, else text."""
    import json

    params: dict[str, Any] = {}
    read: Callable[[str], Any] = json.loads
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"{word!r} is not a parameter; write name=value, such as reg=1e-3")
        try:
            params[name] = read(value)
        except ValueError:
            params[name] = value
    return params
