"""Questions of many threads answered together: one commit, or one matrix product, for all."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")
_MOST = 16  # that are waited for


class Gathering(Generic[Question, Answer]):
    """Questions that come while others are answered share the next answer.

    Parameters
    ----------
    answer : callable
        Takes a list of questions and returns as many answers.
    wait : float
        If several came together the last time, more are waited for as long as one comes within
        these seconds; a thread that is alone never waits.
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
        answer, error = outcome
        if error is not None:
            raise error
        found: Answer = answer
        return found

    def _answer_all(self) -> None:
        seen = len(self._waiting) if self._last > 1 and self._wait else _MOST
        while seen < _MOST:
            time.sleep(self._wait)
            seen, before = len(self._waiting), seen
            if seen == before:
                break
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
