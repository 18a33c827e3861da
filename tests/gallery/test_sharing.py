"""Steps of several requests: what they share is answered once, and one failure stays alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from resight.gallery.index import ExactIndex
from resight.gallery.sharing import Shared, Steps, run_alone, run_together

Batches = list[tuple[str, list[int]]]


class Answers:
    def __init__(self) -> None:
        self.batches: Batches = []

    def square(self, questions: list[int]) -> list[int]:
        self.batches.append(("square", questions))
        return [question**2 for question in questions]

    def cube(self, questions: list[int]) -> list[int]:
        self.batches.append(("cube", questions))
        return [question**3 for question in questions]

    def refuse(self, questions: list[int]) -> list[int]:
        self.batches.append(("refuse", questions))
        raise OSError("disk full")


def sum_of_squares(answers: Answers, *numbers: int) -> Steps[int]:
    total = 0
    for number in numbers:
        total += yield Shared(answers.square, number)
    return total


def test_steps_that_ask_the_same_function_share_its_answer() -> None:
    answers = Answers()
    works = [sum_of_squares(answers, *range(n)) for n in (3, 0, 1, 2)]
    assert [value for value, _ in run_together(works)] == [5, 0, 0, 1]
    assert answers.batches == [("square", [0, 0, 0]), ("square", [1, 1]), ("square", [2])]
    assert run_alone(sum_of_squares(answers, 5)) == 25


def test_a_failure_stays_with_those_it_concerns() -> None:
    answers = Answers()

    def fails(number: int) -> Steps[int]:
        yield Shared(answers.square, number)
        raise ValueError("no")

    def recovers(number: int) -> Steps[str]:
        try:
            yield Shared(answers.refuse, number)
        except OSError as error:
            return f"said: {error}"
        return "written"

    def is_told(number: int) -> Steps[Any]:
        yield Shared(answers.refuse, number)

    works = [fails(1), sum_of_squares(answers, 2), recovers(3), is_told(4)]
    [failed, worked, recovered, told] = run_together(works)
    assert isinstance(failed[1], ValueError)
    assert worked == (4, None)
    assert recovered == ("said: disk full", None)
    assert isinstance(told[1], OSError)
    assert answers.batches == [("square", [1, 2]), ("refuse", [3, 4])]
    with pytest.raises(ValueError, match="no"):
        run_alone(fails(1))


def test_what_most_ask_is_answered_first_so_that_all_share_what_comes_last() -> None:
    answers = Answers()

    def ends_with_the_same(first: bool) -> Steps[int]:
        if first:
            yield Shared(answers.square, 1)
        return (yield Shared(answers.cube, 2))

    found = run_together([ends_with_the_same(n > 0) for n in range(4)])
    assert found == [(8, None)] * 4
    assert answers.batches == [("square", [1, 1, 1]), ("cube", [2, 2, 2, 2])]


def test_an_answer_that_lacks_something_is_a_failure_of_all() -> None:
    def ask(number: int) -> Steps[Any]:
        return (yield Shared(lambda questions: questions[1:], number))

    [(value, error)] = run_together([ask(1)])
    assert value is None
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_searches_that_share_products_find_what_each_finds_alone(share: float) -> None:
    rng = np.random.default_rng(1)
    index = ExactIndex(rng.normal(size=(901, 16)).astype(np.float32))
    questions = [
        (q, 1 + i, None if i % 2 else rng.random(901) < share)
        for i, q in enumerate(rng.normal(size=(12, 16)).astype(np.float32))
    ]
    found = index.search_each(questions)
    for (query, k, allowed), (rows, distances) in zip(questions, found, strict=True):
        squares = ((index.embeddings.astype(float) - query) ** 2).sum(axis=1)
        order = np.argsort(np.where(True if allowed is None else allowed, squares, np.inf))[:k]
        np.testing.assert_array_equal(rows, order)
        np.testing.assert_allclose(distances, squares[order], rtol=1e-12)
