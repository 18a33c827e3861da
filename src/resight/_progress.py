"""Progress on standard error: bars on a terminal, now and then a line elsewhere.

Lines are logged by the logger "resight" (level INFO), which the command line shows and which is
silent in other programs unless they set up logging. Level WARNING or above switches bars off too.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

log = logging.getLogger("resight")

SECONDS_BETWEEN_LINES = 10.0

# The display of this thread: a server that trains in one thread and reads in another has two.
_SHOWN: ContextVar[Progress | None] = ContextVar("shown", default=None)


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances by some steps and shows how far the work is.

    A bar that starts while another is shown is drawn below it.
    """
    start = time.perf_counter()
    if not sys.stderr.isatty() or log.level > logging.INFO:
        yield _lines(title, total)
    else:
        with _bars() as bars:
            task = bars.add_task(title, total=total)
            try:
                yield lambda steps: bars.advance(task, steps)
            finally:
                bars.remove_task(task)
    log.debug("%s: finished in %.1f s", title, time.perf_counter() - start)


def _lines(title: str, total: int | None) -> Callable[[int], None]:
    """Return a function that logs a line at most every 10 seconds and at most 100 in all."""
    done = shown = 0
    last = time.monotonic()

    def advance(steps: int) -> None:
        nonlocal done, shown, last
        done += steps
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES and done - shown >= (total or 0) / 100:
            of_total = f" of {total:,} ({100 * done // total}%)" if total else ""
            log.info("%s: %s%s", title, f"{done:,}", of_total)
            shown, last = done, now

    return advance


@contextmanager
def _bars() -> Iterator[Progress]:
    outer = _SHOWN.get()
    if outer is not None:
        yield outer
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        _SHOWN.set(bars)
        try:
            yield bars
        finally:
            _SHOWN.set(None)
