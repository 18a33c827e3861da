"""Find the same person again across cameras, from a few hundred labelled pairs, on a CPU.

Everything public is importable from here and loaded on first use, so that ``import resight``
stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from resight._version import __version__

_HOME = {
    "AutoKXQDA": "resight.tuning.auto",
    "BlockNormalizer": "resight.learners.normalizer",
    "ITML": "resight.learners.itml",
    "KISSME": "resight.learners.kissme",
    "KXQDA": "resight.learners.kxqda",
    "KernelKISSME": "resight.learners.kernel_kissme",
    "KernelLFDA": "resight.learners.kernel_lfda",
    "KernelMFA": "resight.learners.kernel_mfa",
    "KernelNFST": "resight.learners.kernel_nfst",
    "LFDA": "resight.learners.lfda",
    "LMNN": "resight.learners.lmnn",
    "MFA": "resight.learners.mfa",
    "MLAPG": "resight.learners.mlapg",
    "NFST": "resight.learners.nfst",
    "XQDA": "resight.learners.xqda",
    "cluster": "resight.workers.executors",
    "load": "resight.saving",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'resight' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from resight.learners.kxqda import KXQDA as KXQDA
    from resight.learners.normalizer import BlockNormalizer as BlockNormalizer
    from resight.learners.xqda import XQDA as XQDA
    from resight.saving import load as load
    from resight.workers.executors import cluster as cluster
