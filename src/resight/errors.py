"""Errors a user can meet: each says what was given, what is allowed and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any


class ResightError(Exception):
    """Base of every error that resight raises on purpose; the command line prints it bare."""


class InputError(ResightError, ValueError):
    """What was given cannot be used: bad values, bad files, bad combinations."""


class ConflictError(InputError):
    """Somebody else changed the same thing meanwhile; look at it again before changing it."""


class StoreError(ResightError):
    """A file, folder or database of resight is damaged, foreign, newer or in use."""


def unknown_name(kind: str, given: str, allowed: Iterable[str]) -> InputError:
    """Build the error for a name that does not exist, with the nearest one that does.

    >>> str(unknown_name("descriptor", "lomoo", ["gog", "lomo"]))
    "unknown descriptor 'lomoo'; did you mean 'lomo'? Valid: gog, lomo"
    """
    names = sorted(allowed)
    nearest = get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    return InputError(f"unknown {kind} {given!r}{hint} Valid: {', '.join(names)}")


def require_package(name: str, extra: str, what: str) -> Any:
    """Import a package that `what` needs; without it say which extra brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        how = f"pip install 'resight[{extra}]'"
        raise InputError(f"{what} needs the package {name}: {how} ({error})") from error
