"""Find the same person again across cameras, from a few hundred labelled pairs, on a CPU.

Everything public is importable from here and loaded on first use, so that ``import resight``
stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from resight._version import __version__
from resight.registry import LEARNERS

_HOME = {
    "BlockNormalizer": "resight.learners.normalizer",
    "cluster": "resight.workers.executors",
    "load": "resight.models.files",
}
"""Public names besides the learners, which `resight.registry` lists, and where they live."""


def _homes() -> dict[str, str]:
    return _HOME | {spec.class_name: spec.module for spec in LEARNERS.values()}


__all__ = ["__version__", *_homes()]


def __getattr__(name: str) -> Any:
    home = _homes().get(name)
    if home is None:
        raise AttributeError(f"module 'resight' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from resight.learners.kxqda import KXQDA as KXQDA
    from resight.learners.normalizer import BlockNormalizer as BlockNormalizer
    from resight.learners.xqda import XQDA as XQDA
    from resight.models.files import load as load
    from resight.workers.executors import cluster as cluster
