"""Work of several requests, done step by step: what they ask of one function is answered at once.

The steps of a request are a generator. It yields a `Shared` question and is sent the answer; one
matrix product, or one commit, answers those of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar, cast

Result = TypeVar("Result")


class Shared(NamedTuple):
    """A question to a function that answers many."""

    answer: Callable[[list[Any]], Sequence[Any]]
    question: Any


Steps = Generator[Shared, Any, Result]
Outcome = tuple[Any, "Exception | None"]  # what the steps returned, or raised


def run_together(works: Sequence[Steps[Any]]) -> list[Outcome]:
    """Take the steps of several requests, one after the other up to what they share.

    One that fails leaves the others alone; all who share an answer hear of its failure.
    """
    outcomes: dict[int, Outcome] = {}
    asking: dict[int, Shared] = {}

    def go_on(number: int, value: Any = None, error: Exception | None = None) -> None:
        work = works[number]
        try:
            asking[number] = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            outcomes[number] = end.value, None
        except Exception as failure:
            outcomes[number] = None, failure

    for number in range(len(works)):
        go_on(number)
    while asking:
        # What most ask first: meanwhile the others may come to ask the same as they.
        [(answer, _)] = Counter(one.answer for one in asking.values()).most_common(1)
        same = [number for number, one in asking.items() if one.answer == answer]
        questions = [asking.pop(number).question for number in same]
        try:
            answers = list(zip(same, answer(questions), strict=True))
        except Exception as failure:
            for number in same:
                go_on(number, error=failure)
        else:
            for number, value in answers:
                go_on(number, value)
    return [outcomes[number] for number in range(len(works))]


def run_alone(steps: Steps[Result]) -> Result:
    """Take the steps of one request."""
    [(value, error)] = run_together([steps])
    if error is not None:
        raise error
    return cast("Result", value)
