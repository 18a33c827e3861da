"""Questions of many threads, answered together."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from resight.gallery.gathering import Gathering
from resight.gallery.index import ExactIndex


def ask_all(gathering: Gathering[int, int], questions: range) -> dict[int, object]:
    answers: dict[int, object] = {}

    def ask(question: int) -> None:
        try:
            answers[question] = gathering.ask(question)
        except ValueError as error:
            answers[question] = error

    threads = [threading.Thread(target=ask, args=(question,)) for question in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_those_that_come_meanwhile_are_answered_together() -> None:
    batches: list[list[int]] = []

    def squares(questions: list[int]) -> list[int]:
        batches.append(questions)
        time.sleep(0.05)
        return [question**2 for question in questions]

    assert ask_all(Gathering(squares), range(9)) == {n: n**2 for n in range(9)}
    assert len(batches) < 9
    assert sorted(one for batch in batches for one in batch) == list(range(9))


def test_a_failure_reaches_all_who_wait_and_nobody_later() -> None:
    failing = [True]

    def answer(questions: list[int]) -> list[int]:
        time.sleep(0.02)
        if failing[0]:
            raise ValueError("no")
        return questions

    gathering = Gathering(answer)
    assert {str(one) for one in ask_all(gathering, range(5)).values()} == {"no"}
    failing[0] = False
    assert gathering.ask(7) == 7


def test_a_thread_that_is_alone_does_not_wait() -> None:
    gathering = Gathering(lambda questions: questions, wait=5.0)
    begin = time.perf_counter()
    assert [gathering.ask(n) for n in range(20)] == list(range(20))
    assert time.perf_counter() - begin < 2.0


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_queries_of_many_threads_find_what_each_finds_alone(share: float) -> None:
    rng = np.random.default_rng(1)
    index = ExactIndex(rng.normal(size=(900, 16)).astype(np.float32))
    questions = [
        (q, 1 + i, None if i % 2 else rng.random(900) < share)
        for i, q in enumerate(rng.normal(size=(12, 16)).astype(np.float32))
    ]
    together = index._together(questions)
    for (query, k, allowed), (rows, distances) in zip(questions, together, strict=True):
        [(alone, of_alone)] = ExactIndex(index.embeddings).search(query[None], k, allowed)
        np.testing.assert_array_equal(rows, alone)
        np.testing.assert_array_equal(distances, of_alone)


def test_those_who_are_at_work_are_waited_for_but_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("resight.gallery.gathering._LONGEST", 10.0)
    batches: list[list[int]] = []

    def answer(questions: list[int]) -> list[int]:
        batches.append(questions)
        return questions

    gathering, begun = Gathering(answer, wait=0.005), threading.Event()

    def late() -> None:
        with gathering.at_work():
            begun.set()
            time.sleep(0.01)  # longer than one wait: without `at_work` the first would go alone
            gathering.ask(2)

    thread = threading.Thread(target=late)
    thread.start()
    begun.wait()
    with gathering.at_work():
        assert gathering.ask(1) == 1
    thread.join()
    assert sorted(batches[0]) == [1, 2]
    monkeypatch.setattr("resight.gallery.gathering._LONGEST", 0.04)
    with gathering.at_work():  # somebody else who never asks
        begin = time.monotonic()
        thread = threading.Thread(target=gathering.ask, args=(3,))
        thread.start()
        thread.join()
        assert time.monotonic() - begin < 2.0
    assert batches[-1] == [3]
