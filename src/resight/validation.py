"""What may enter: names, times, boxes, numbers, arrays and files.

Tables, forms, the command line and Python end at the same functions, so that what one of them
refuses cannot come in by another.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError

MAX_NAME = 255  # of people and cameras: folders are called so, and no file system has longer names
MAX_PATH = 4096
EARLIEST, LATEST = -2_208_988_800.0, 253_402_300_799.0  # seconds: the years 1900 and 9999
MAX_SIDE = 1_000_000  # pixels: where boxes may begin and end
MAX_DAYS = 36_500
MAX_JOBS = 1024
MAX_TEXT = 2**30  # bytes of a table or JSON document: ten million sightings
_MANY = 2**31 - 1

# Control characters, line separators, what turns the direction of text, halves of characters
# (a file name that is not UTF-8 has these).
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def check_name(text: Any, what: str, longest: int = MAX_NAME) -> str:
    """Return a name if it is text that can be stored, shown and typed; it may be empty.

    >>> check_name("Müller 人", "person")
    'Müller 人'
    """
    if not isinstance(text, str):
        raise InputError(f"{what} {text!r}: give text, not {type(text).__name__}")
    if len(text) > longest:
        raise InputError(f"{what} {text[:40]!r}... has {len(text)} characters; {longest} at most")
    if bad := _UNPRINTABLE.search(text):
        code = ord(bad[0])
        kind = "a control character" if code < 0xA0 else "a line or direction mark"
        halves = 0xD800 <= code <= 0xDFFF
        called = "bytes that are not UTF-8" if halves else f"{kind} (U+{code:04X})"
        raise InputError(f"{what} {text!r} contains {called}; rename it: only printable characters")
    return text


def check_names(values: Any, what: str, longest: int = MAX_NAME) -> NDArray[np.str_]:
    """Return many names as an array; whole numbers are names too, missing values are not."""
    if isinstance(values, (str, bytes)) or not isinstance(values, (Iterable, np.ndarray)):
        raise InputError(f"{what}={values!r}: give a list of names")
    given = values if isinstance(values, np.ndarray) else np.array(list(values), object)
    if given.ndim != 1:
        raise InputError(f"{what} have shape {given.shape}; give one name per sighting")
    if given.dtype.kind not in "Uiu":
        for value in given.tolist():
            if not isinstance(value, (str, Integral)) or isinstance(value, bool):
                raise InputError(
                    f"{what} contain {value!r}; give text or whole numbers, '' where unknown"
                )
    texts = list(map(str, given.tolist()))
    # One search over all of them: tables have millions of rows.
    if max(map(len, texts), default=0) > longest or _UNPRINTABLE.search("".join(texts)):
        for text in texts:
            check_name(text, what, longest)
    return given.astype(str)


def check_number(value: Any, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a finite number within `low` and `high`.

    >>> check_number("7", "retention")
    Traceback (most recent call last):
        ...
    resight.errors.InputError: retention='7': it must be a finite number
    """
    real = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if real and math.isfinite(value) and low <= float(value) <= high:
        return float(value)
    raise InputError(f"{what}={value!r}: it must be a finite number{_range(low, high)}")


def check_count(value: Any, what: str, low: int = 1, high: int = _MANY) -> int:
    """Return a whole number within `low` and `high`."""
    whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    if whole and low <= int(value) <= high:
        return int(value)
    raise InputError(f"{what}={value!r}: it must be a whole number{_range(low, high)}")


def _range(low: float, high: float) -> str:
    if high in (math.inf, _MANY):
        return "" if low == -math.inf else f", at least {low:g}"
    return f" from {low:,g} to {high:,.12g}"


def check_seconds(value: Any, what: str = "time") -> float:
    """Return a time in seconds; milliseconds, which would be some year after 9999, are refused."""
    try:
        return check_number(value, what, EARLIEST, LATEST)
    except InputError:
        raise InputError(f"{what} {value}: give seconds between the years 1900 and 9999") from None


def check_times(values: Any) -> NDArray[np.float64]:
    """Return many times in seconds; NaN = unknown."""
    times = check_array(values, "times", (None,), finite=False).astype(np.float64)
    wrong = ~(np.isnan(times) | ((times >= EARLIEST) & (times <= LATEST)))
    if wrong.any():
        check_seconds(float(times[wrong.argmax()]))
    return times


def check_boxes(values: Any) -> NDArray[np.int64]:
    """Return boxes x, y, width, height as whole pixels, (n, 4)."""
    boxes = check_array(values, "boxes", (None, 4)).astype(np.float64)
    wrong = (np.abs(boxes) > MAX_SIDE).any(axis=1) | (boxes[:, 2:] < 1).any(axis=1)
    if wrong.any():
        x, y, w, h = (f"{side:g}" for side in boxes[wrong.argmax()].tolist())
        raise InputError(
            f"box x={x} y={y} w={w} h={h}: width and height must be positive and all four at most "
            f"{MAX_SIDE:,} pixels"
        )
    return boxes.round().astype(np.int64)


def check_array(
    values: Any, what: str, shape: Sequence[int | None], finite: bool = True
) -> NDArray[Any]:
    """Return an array of real numbers, not copied; `shape` has None for sides of any length."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} must be an array of numbers ({error})") from error
    if array.dtype.kind not in "fiu" and array.size:
        raise InputError(f"{what} must be real numbers, not {array.dtype}")
    expected = tuple(n if side is None else side for side, n in zip(shape, array.shape))  # noqa: B905
    if array.ndim != len(shape) or array.shape != expected:
        shown = ", ".join("n" if side is None else str(side) for side in shape)
        raise InputError(f"{what} have shape {array.shape}, expected ({shown})")
    if finite and not np.isfinite(array).all():
        raise InputError(f"{what} contain NaN or infinite values; compute them again")
    return array


def check_file(path: str | os.PathLike[str], most: int | None = None) -> Path:
    """Refuse what is missing, not a regular file or larger than `most` bytes, before it is read.

    Devices and pipes never end or never begin.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise InputError(f"cannot read {path}: it does not exist; check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path} is a folder; give a file")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path} is not a regular file; give one that is stored on a disk")
    if most is not None and found.st_size > most:
        raise InputError(
            f"{path} has {found.st_size / 2**20:,.4g} MB; the limit is {most / 2**20:,.4g} MB"
        )
    return Path(path)


def read_bytes(path: str | os.PathLike[str], most: int = MAX_TEXT) -> bytes:
    """Read a file that `check_file` lets pass."""
    file = check_file(path, most)
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def read_text(path: str | os.PathLike[str], most: int = MAX_TEXT) -> str:
    """Read a file of UTF-8, with or without a byte order mark."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{Path(path).name} is not UTF-8 text; save it in UTF-8") from error


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; every trouble with it is a ValueError, also depth and numbers that are none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")
