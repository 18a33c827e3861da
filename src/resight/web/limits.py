"""What a server grants to clients: connections, and time for each part of a request."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass
class Limits:
    """Counts, and seconds."""

    header: float = 10.0  # to arrive; an idle connection is one that waits for a header
    body: float = 60.0  # likewise; each MB of what is added has this time
    answer: float = 60.0  # to compute an answer, and once more for the client to take it
    connections: int = 500  # above which the one is closed that waits longest for its request
    workers: int = 8  # requests computed at once, which bounds the memory; others wait
    ending: float = 8.0  # for a server that was told to end, whatever clients do


LIMITS = Limits()
LARGE = "/jobs/add"  # the route that takes bodies of any length within its own limit
_PHASES = {h11.IDLE: "header", h11.SEND_BODY: "body"}  # by what the client has to do next


class TimedProtocol(H11Protocol):
    """Closes connections of clients that are too slow: uvicorn alone would wait for ever."""

    _phase, _since, _came = "", 0.0, 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: D102
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > LIMITS.connections:
            every: Any = self.connections  # all of this class
            waiting = [one for one in every if one._phase == "header"]
            min(waiting, key=lambda one: one._since).transport.abort()

    def data_received(self, data: bytes) -> None:  # noqa: D102
        super().data_received(data)
        self._came += len(data)
        adding = self._phase == "body" and (self.scope or {}).get("path") == LARGE
        if adding and self._came > 2**20:  # it comes, if slowly: the clock starts anew
            self._phase, self._came = "", 0
        self._watch()

    def on_response_complete(self) -> None:  # noqa: D102
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        """Start the clock anew when another part of a request or answer is waited for."""
        phase = _PHASES.get(self.conn.their_state, "answer")
        if phase != self._phase:
            self._phase, self._since = phase, time.monotonic()
            self._abort_after(2 * LIMITS.answer if phase == "answer" else getattr(LIMITS, phase))

    def _abort_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._abort)

    def _abort(self) -> None:
        """Hang up, unless the client is still taking an answer and has time left for it."""
        left = LIMITS.answer - (time.monotonic() - self._since)
        if self.transport.get_write_buffer_size() and left > 0:
            self._abort_after(left)
        else:
            self.transport.abort()
