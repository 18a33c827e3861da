"""Requests that come at the same time, answered in one thread, by one product and one commit."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.concurrency import run_in_threadpool

from resight.gallery import Gallery
from resight.gallery.sharing import Steps, alone, together

_MOST = 16  # at once
_WAIT = 0.005  # seconds for another one, if several came together the last time
_LONGEST = 0.02  # seconds that the first of them waits


class Batches:
    """Takes the steps (see `sharing`) of requests, all that wait at once.

    One thread does them all: several would take turns at Python's lock, each on another processor
    whose caches are cold. Where embeddings are not in memory there is no product to share, and
    each request waits for the database or the cluster in a thread of its own.
    """

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery
        self._waiting: list[tuple[Steps[Any], asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None
        self._last = 0  # how many were answered together

    async def answer(self, steps: Steps[Any]) -> Any:
        """Return what the steps return, or raise what they raise."""
        if not self._gallery.in_memory:
            return await run_in_threadpool(alone, steps)
        outcome = asyncio.get_running_loop().create_future()
        self._waiting.append((steps, outcome))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._answer_all())
        return await outcome

    async def _answer_all(self) -> None:
        while self._waiting:
            await self._wait_for_more()
            batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            self._last = len(batch)
            found = await run_in_threadpool(together, [steps for steps, _ in batch])
            for (_, outcome), (value, error) in zip(batch, found, strict=True):
                if outcome.cancelled():
                    continue
                if error is None:
                    outcome.set_result(value)
                else:
                    outcome.set_exception(error)

    async def _wait_for_more(self) -> None:
        """Wait for as many as the last time, and more as long as they come."""
        end, seen, more = time.monotonic() + _LONGEST, len(self._waiting), self._last > 1
        while more and seen < _MOST and time.monotonic() < end:
            await asyncio.sleep(_WAIT)
            seen, before = len(self._waiting), seen
            more = seen > before or seen < self._last
