"""Find the same person again across cameras, from a few hundred labelled pairs, on a CPU.

Everything public is importable from here and loaded on first use, so that ``import resight``
stays light. Type checkers read ``__init__.pyi``, which `make docs` writes from the same tables.
"""

from __future__ import annotations

from importlib import import_module

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
    "connect": ("resight.client", "connect"),
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
