"""Find the same person again across cameras, from a few hundred labelled pairs, on a CPU.

Everything public is importable from here and loaded on first use, so that ``import resight``
stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from resight._version import __version__
from resight.registry import LEARNERS

# Public names besides the learners, which `resight.registry` lists: where they live, and as what.
_HOME = {
    "BlockNormalizer": ("resight.learners.normalizer", "BlockNormalizer"),
    "CMCDisplay": ("resight.report.displays", "CMCDisplay"),
    "FeatureStore": ("resight.features.store", "FeatureStore"),
    "Gallery": ("resight.gallery.gallery", "Gallery"),
    "Model": ("resight.models.model", "Model"),
    "Result": ("resight.experiments.results", "Result"),
    "Sightings": ("resight.datasets.sightings", "Sightings"),
    "cluster": ("resight.workers.executors", "cluster"),
    "evaluate": ("resight.experiments.evaluate", "evaluate"),
    "fit": ("resight.models.fitting", "fit"),
    "load": ("resight.models.files", "load"),
    "sightings": ("resight.datasets", "load"),
}


def _homes() -> dict[str, tuple[str, str]]:
    return _HOME | {one.class_name: (one.module, one.class_name) for one in LEARNERS.values()}


__all__ = ["__version__", *_homes()]


def __getattr__(name: str) -> object:
    home = _homes().get(name)
    if home is None:
        raise AttributeError(f"module 'resight' has no attribute {name!r}")
    return getattr(import_module(home[0]), home[1])


def __dir__() -> list[str]:
    return sorted(__all__)


# For type checkers, which cannot see names that are loaded on first use.
if TYPE_CHECKING:
    from resight import datasets
    from resight.datasets.sightings import Sightings as Sightings
    from resight.experiments.evaluate import evaluate as evaluate
    from resight.experiments.results import Result as Result
    from resight.features.store import FeatureStore as FeatureStore
    from resight.gallery.gallery import Gallery as Gallery
    from resight.learners.euclidean import Euclidean as Euclidean
    from resight.learners.itml import ITML as ITML
    from resight.learners.kernel_kissme import KernelKISSME as KernelKISSME
    from resight.learners.kernel_lfda import KernelLFDA as KernelLFDA
    from resight.learners.kernel_mfa import KernelMFA as KernelMFA
    from resight.learners.kernel_nfst import KernelNFST as KernelNFST
    from resight.learners.kissme import KISSME as KISSME
    from resight.learners.kxqda import KXQDA as KXQDA
    from resight.learners.lfda import LFDA as LFDA
    from resight.learners.lmnn import LMNN as LMNN
    from resight.learners.mfa import MFA as MFA
    from resight.learners.mlapg import MLAPG as MLAPG
    from resight.learners.nfst import NFST as NFST
    from resight.learners.normalizer import BlockNormalizer as BlockNormalizer
    from resight.learners.xqda import XQDA as XQDA
    from resight.models.files import load as load
    from resight.models.fitting import fit as fit
    from resight.models.model import Model as Model
    from resight.report.displays import CMCDisplay as CMCDisplay
    from resight.tuning.auto import AutoKXQDA as AutoKXQDA
    from resight.workers.executors import cluster as cluster

    sightings = datasets.load
