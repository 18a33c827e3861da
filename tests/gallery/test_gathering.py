"""Questions of many threads, answered together."""

from __future__ import annotations

import threading
import time

from resight.gallery.gathering import Gathering


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
