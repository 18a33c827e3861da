"""Questions of many threads answered together: one commit, or one matrix product, for all."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")
_MOST = 16  # that are waited for
_WAITS = 20  # of the first of them, at most


class Gathering(Generic[Question, Answer]):
    """Questions that come while others are answered share the next answer.

    If several came together the last time, or other threads are `at_work`, as many are waited for,
    and more as long as one comes within `wait` seconds, at most twenty times; a thread that is
    alone never waits.
    """

    def __init__(self, answer: Callable[[list[Question]], list[Answer]], wait: float = 0.0) -> None:
        self._answer, self._wait = answer, wait
        self._answering = threading.Lock()
        self._waiting: deque[tuple[Question, list[Any]]] = deque()
        self._last = 0  # how many were answered together
        self._busy = 0  # threads at work
        self._counting = threading.Lock()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Tell that this thread will ask soon: whoever asks meanwhile waits a little for it."""
        with self._counting:
            self._busy += 1
        try:
            yield
        finally:
            with self._counting:
                self._busy -= 1

    def ask(self, question: Question) -> Answer:
        """Return the answer, or raise what all who wait for it hear of."""
        outcome: list[Any] = []  # filled by whichever thread answers
        self._waiting.append((question, outcome))
        with self._answering:
            if not outcome:
                self._answer_all()
        found: Answer = outcome[0]
        if outcome[1] is not None:
            raise outcome[1]
        return found

    def _answer_all(self) -> None:
        seen, end = len(self._waiting), time.monotonic() + _WAITS * self._wait
        more = self._wait > 0 and (self._last > 1 or self._busy > seen)
        while more and seen < _MOST and time.monotonic() < end:
            time.sleep(self._wait)
            seen, before = len(self._waiting), seen
            more = seen > before or seen < max(self._last, self._busy)
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._last = len(batch)
        try:
            answers = self._answer([question for question, _ in batch])
        except Exception as error:
            for _, outcome in batch:
                outcome += (None, error)
            return
        for (_, outcome), answer in zip(batch, answers, strict=True):
            outcome += (answer, None)
