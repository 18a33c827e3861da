"""What must be true after an operation was interrupted, however it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.reliability.child import Child, State
from benchmarks.reliability.operations import Operation


class Clean(NamedTuple):
    """States around an operation that nothing interrupts."""

    before: State
    after: State


class Failure(NamedTuple):
    """Something that is not as it must be."""

    kind: str  # "lost", "damaged", "left over" or "unfinishable"
    text: str


def look(operation: Operation, place: str, clean: Clean, child: Child) -> list[Failure]:
    """Reopen, check, do the same again, compare with the run that nothing interrupted."""
    found: list[Failure] = []
    kind = "damaged"
    try:
        found += _interrupted(operation, place, clean, child)
        kind = "unfinishable"
        operation.finish(place)
        if not equal(operation.state(place), clean.after):
            found.append(Failure(kind, "done again, it gives something else than a clean run"))
        found += [Failure("damaged", text) for text in operation.problems(place)]
        found += [Failure("left over", t) for t in operation.leftovers(place, operation.steps)]
    except Exception as error:  # whatever it is: a user would meet it
        found.append(Failure(kind, f"{type(error).__name__}: {error}"))
    return found


def _interrupted(operation: Operation, place: str, clean: Clean, child: Child) -> Iterator[Failure]:
    if child.end is not None and "traceback" in child.end:
        yield Failure("damaged", child.end["traceback"].strip().splitlines()[-1])
    state = operation.state(place)
    known = {**state.get("rows", {}), **state.get("answers", {})}
    names = [name for name in child.told if isinstance(name, str)]
    yield from (Failure("lost", name) for name in names if name not in known)
    if child.end is not None and "result" in child.end and not equal(state, clean.after):
        yield Failure("lost", "it was said to be done and is not")
    yield from (Failure("damaged", text) for text in between(state, clean.before, clean.after))
    if state:
        for text in operation.problems(place):
            if not operation.unfinished or operation.unfinished not in text:
                yield Failure("damaged", text)
    steps = max((step for step in child.told if isinstance(step, int)), default=0)
    if steps:
        yield from (Failure("left over", text) for text in operation.leftovers(place, steps))


def between(state: State, before: State, after: State) -> list[str]:
    """Say what is neither as before nor as after the operation."""
    wrong = []
    for name in state.keys() | before.keys() | after.keys():
        now, old, new = (one.get(name) for one in (state, before, after))
        if name in ("rows", "answers"):
            now, old, new = (one or {} for one in (now, old, new))
            wrong += [f"{name}: {key} is lost" for key in (old.keys() & new.keys()) - now.keys()]
            known = {**old, **new}
            wrong += [
                f"{name}: {key} is wrong" for key in now if not equal(now[key], known.get(key))
            ]
        elif not equal(now, old) and not equal(now, new):
            wrong.append(f"{name} is neither the old nor the new: {now!r:.100}")
    return wrong


def equal(a: Any, b: Any) -> bool:
    """Compare states; embeddings of other batches may differ in their last bits."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and np.allclose(a, b, atol=1e-5)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return bool(a == b)
