"""Progress bars: on standard error, on a terminal only, so that output can be piped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

# What this thread shows: a server that learns in one thread and reads in another has two.
_SHOWN: ContextVar[Progress | None] = ContextVar("shown", default=None)


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a bar by some steps (silent where nobody looks).

    A bar that is begun while another is shown stands below it.
    """
    if not sys.stderr.isatty():
        yield lambda steps: None
        return
    with _bars() as bars:
        task = bars.add_task(title, total=total)
        try:
            yield lambda steps: bars.advance(task, steps)
        finally:
            bars.remove_task(task)


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
