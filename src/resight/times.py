"""Times as people write and read them."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import datetime, timezone, tzinfo
from functools import partial
from zoneinfo import ZoneInfo

from resight.errors import InputError
from resight.validation import EARLIEST, LATEST, check_seconds

EPOCH = 1e8  # smaller times count from the start of a recording, not from 1970


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name, such as Europe/Paris."""
    try:
        return timezone.utc if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InputError(f"unknown time zone {name!r}; write UTC or, say, Europe/Paris") from error


def show(seconds: float | None, zone: tzinfo = timezone.utc) -> str:
    """Write a time: a date (UTC) if it is one, else hours:minutes:seconds from the start.

    >>> show(3725.5), show(1.7e9), show(None)
    ('1:02:05.5', '2023-11-14 22:13:20', '')
    """
    if seconds is None or math.isnan(seconds):
        return ""
    if not EARLIEST <= seconds <= LATEST:  # older versions let such times in
        return f"{seconds:g} s"
    if abs(seconds) >= EPOCH:
        return datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%d %H:%M:%S")
    sign, rest = ("-", -seconds) if seconds < 0 else ("", seconds)
    whole = int(rest)
    fraction = f"{rest - whole:.3f}".rstrip("0").rstrip(".")[1:]
    return f"{sign}{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}{fraction}"


def parse(text: str, zone: tzinfo = timezone.utc) -> float:
    """Read a time: seconds, hours:minutes:seconds, or a date as in ISO 8601 (UTC unless it says).

    >>> parse("90"), parse("1:02:05.5"), parse("2023-11-14 22:13:20")
    (90.0, 3725.5, 1700000000.0)
    """
    text = text.strip()
    for read in (float, _clock, partial(_date, zone=zone)):
        with suppress(ValueError, OverflowError):
            return check_seconds(read(text))
    raise InputError(
        f"{text!r} is not a valid time; use seconds (90), hours:minutes:seconds "
        "(0:01:30) or a date (2024-05-31T14:00), from the year 1900 to 9999"
    )


def _clock(text: str) -> float:
    seconds = 0.0
    for part in text.split(":", 2):
        seconds = 60.0 * seconds + float(part)
    return seconds


def _date(text: str, zone: tzinfo) -> float:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
