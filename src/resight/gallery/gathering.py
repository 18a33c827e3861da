"""Questions of many threads answered together: one commit for all."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")
_WAITS = 20  # of the first of those that come, at most


class Gathering(Generic[Question, Answer]):
    """Questions that come while others are answered share the next answer.

    If several came together the last time, as many are waited for, and more as long as one comes
    within `wait` seconds, at most twenty times; a thread that is alone never waits.
    """

    def __init__(self, answer: Callable[[list[Question]], list[Answer]], wait: float = 0.0) -> None:
        self._answer, self._wait = answer, wait
        self._answering = threading.Lock()
        self._waiting: deque[tuple[Question, list[Any]]] = deque()
        self._last = 0  # how many were answered together

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
        more = self._wait > 0 and self._last > 1
        while more and time.monotonic() < end:
            time.sleep(self._wait)
            seen, before = len(self._waiting), seen
            more = seen > before or seen < self._last
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
