"""Settings from a TOML file: keys are the long names of a command's options and arguments."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from resight.errors import InputError, unknown_name
from resight.validation import MAX_PATH, check_name, read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LARGEST = 2**14  # bytes; keys of many parts take a time that grows with their square
# Keys that version 0.1 used in files.
_OLD_KEYS = {
    "dataset": "data",
    "descriptors": "descriptor",
    "find": "detector",
    "learners": "learner",
    "params": "param",
}


def read_config(file: Path, params: Sequence[Any]) -> dict[str, Any]:
    """Read settings for a command with these parameters; unknown keys are refused."""
    text = read_text(file, _LARGEST)
    try:
        settings = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not valid TOML: {error}") from error
    # Options that Python reserves the name of, as --class, end in "_" there.
    known = {
        p.name.rstrip("_"): p for p in params if p.expose_value and not getattr(p, "hidden", False)
    }
    chosen = {}
    for key, value in settings.items():
        name = key.replace("-", "_")
        name = name if name in known else _OLD_KEYS.get(name, name)
        if name not in known:
            raise unknown_name(f"setting in {file}", key, known)
        several = getattr(known[name], "multiple", False) or known[name].nargs == -1
        chosen[known[name].name] = _as_given(value, several)
    return chosen


def _as_given(value: Any, multiple: bool) -> Any:
    """Turn a TOML value into what the option takes on the command line.

    >>> _as_given({"kxqda": {"reg": 0.001}}, True), _as_given(["gog", "lomo"], False)
    (['kxqda.reg=0.001'], 'gog,lomo')
    """
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            check_name(text, "setting", MAX_PATH)
    if isinstance(value, dict):
        return list(_assignments(value))
    if isinstance(value, list) and not multiple:
        return ",".join(map(str, value))
    return [value] if multiple and not isinstance(value, list) else value


def _assignments(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _assignments(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}={json.dumps(value)}"
