"""Requests that come at the same time, answered in one thread, by one product and one commit."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.concurrency import run_in_threadpool

from resight.gallery import Gallery
from resight.gallery.sharing import Steps, run_alone, run_together

_MOST = 16  # at once
_WAIT, _WAITS = 0.005, 4  # seconds for another one, if several came together the last time


class RequestBatches:
    """Takes the steps (see `sharing`) of requests, all that wait at once.

    One thread does them all: several would take turns at Python's lock, each on another processor
    whose caches are cold. Slow ones, and those of a gallery that has no product to share, have
    threads of their own.
    """

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery
        self._waiting: list[tuple[Steps[Any], asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None
        self._last = 0  # how many were answered together

    async def answer(self, steps: Steps[Any], *, slow: bool = False) -> Any:
        """Return what the steps return, or raise what they raise."""
        if slow or not self._gallery.shares_products:
            return await run_in_threadpool(run_alone, steps)
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
            try:
                found = await run_in_threadpool(run_together, [steps for steps, _ in batch])
            except Exception as error:  # such as no thread to be had
                found = [(None, error)] * len(batch)
            for (_, outcome), (value, failure) in zip(batch, found, strict=True):
                if failure is not None and not outcome.done():
                    outcome.set_exception(failure)
                elif not outcome.done():  # as it is if the request was cancelled
                    outcome.set_result(value)

    async def _wait_for_more(self) -> None:
        """Wait for as many as the last time, and more as long as they come."""
        for _ in range(_WAITS if self._last > 1 else 0):
            before = len(self._waiting)
            if before < _MOST:
                await asyncio.sleep(_WAIT)
            if len(self._waiting) == before >= self._last:
                break
