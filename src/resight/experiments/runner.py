"""Splits run one by one or side by side; finished ones are kept, so that a killed run resumes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from resight._files import digest_of, write_json
from resight._progress import progress
from resight.protocols import Split


def over_splits(
    measure: Callable[[Split], Any],
    splits: Sequence[Split],
    folder: Path | None = None,
    *,
    n_jobs: int = 1,
    threads: int = 1,
    title: str = "splits",
) -> list[Any]:
    """Call `measure` for each split that `folder` does not hold yet; return all results.

    What `measure` returns must be what JSON can hold, and is returned as JSON gives it back. The
    folder of finished splits must be named after everything that they depend on. `threads` are
    those of BLAS in each process: at usual sizes two fits side by side are faster than one fit on
    two threads.
    """
    from joblib import Parallel, delayed

    files = [folder and folder / f"{number}.json" for number in range(len(splits))]
    found = [_finished(file) for file in files]
    missing = [number for number, result in enumerate(found) if result is None]
    tasks = [delayed(_measured)(measure, splits[i], files[i], threads) for i in missing]
    with progress(title, len(splits)) as advance:
        advance(len(splits) - len(missing))
        done = Parallel(n_jobs=max(1, min(n_jobs, len(tasks))), return_as="generator")(tasks)
        for number, text in zip(missing, done, strict=True):
            found[number] = json.loads(text)
            advance(1)
    return found


def _measured(measure: Callable[[Split], Any], split: Split, out: Path | None, threads: int) -> str:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        result = measure(split)
    if out is not None:
        write_json(out, result)
    return json.dumps(result, sort_keys=True, allow_nan=False)


def _finished(file: Path | None) -> Any:
    with suppress(OSError, ValueError):  # missing, or damaged by a full disk: measured again
        return None if file is None else json.loads(file.read_text("utf-8"))
    return None


class FinishedSplits:
    """Where an evaluation keeps finished splits until its result is written: STORE/splits/."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._used: list[Path] = []

    def folder(self, *identity: str) -> Path:
        """Return the folder of results that depend on `identity` and on nothing else."""
        self._used.append(self.store / "splits" / digest_of(*identity))
        return self._used[-1]

    def remove(self) -> None:
        """Remove the splits of this evaluation, and the folders that are empty then."""
        for folder in self._used:
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            (self.store / "splits").rmdir()
            self.store.rmdir()
