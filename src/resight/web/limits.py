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
    """Seconds, and counts.

    Attributes
    ----------
    header : float
        For the header of a request to arrive, and for which an idle connection is kept.
    body : float
        For the body of a request to arrive.
    answer : float
        For an answer to be computed, and once more to be taken by the client.
    connections : int
        Above which the connection is closed that has been waiting longest for its request.
    workers : int
        Requests that are computed at once, which bounds the memory; others wait for their turn.
    ending : float
        Within which a server that was told to end has ended, whatever clients do.
    """

    header: float = 10.0
    body: float = 60.0
    answer: float = 60.0
    connections: int = 500
    workers: int = 8
    ending: float = 8.0


LIMITS = Limits()


class TimedProtocol(H11Protocol):
    """Closes connections of clients that are too slow: uvicorn alone would wait for ever."""

    _phase = ""
    _since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a header; where there are too many, let go of another connection."""
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > LIMITS.connections:
            every: Any = self.connections  # all of this class
            others = [one for one in every if one._phase == "header"]
            min(others, key=lambda one: one._since).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what has come, and see which part of the request is still missing."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        """Start the clock anew when another part of a request or answer is waited for."""
        states = {h11.IDLE: "header", h11.SEND_BODY: "body"}
        phase = states.get(self.conn.their_state, "answer")
        if phase == self._phase:
            return
        self._phase, self._since = phase, time.monotonic()
        seconds = {"header": LIMITS.header, "body": LIMITS.body, "answer": 2 * LIMITS.answer}
        self._abort_after(seconds[phase])

    def _abort_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._abort)

    def _abort(self) -> None:
        """Hang up, unless the client is still taking an answer and has time left for it."""
        waited = time.monotonic() - self._since
        if self.transport.get_write_buffer_size() and waited < LIMITS.answer:
            self._abort_after(LIMITS.answer - waited)
        else:
            self.transport.abort()
