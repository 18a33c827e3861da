"""Landmark k-XQDA from stored features: sums of chunks by workers, added up here.

    STORE/landmarks-DIGEST/        removed when the fit is done
        model/                     normalisation and landmarks, which every worker loads once
        GROUP-NUMBER.npz           sums of one chunk, written whole by a worker

A fit that was interrupted finds its finished chunks again: the digest names features, labels and
parameters.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight._files import atomic_write, digest_of
from resight._progress import progress
from resight._version import __version__
from resight.errors import InputError, ResightError
from resight.features.rows import FeatureRows
from resight.learners._landmark_sums import (
    ChunkSums,
    LandmarkStatistics,
    add_up,
    pair_weights,
    total,
)
from resight.learners._landmarks import landmark_rows
from resight.learners._laplacian import CrossCameraPairs
from resight.models.files import build
from resight.models.model import Model
from resight.saving import read
from resight.tuning.candidates import CV_FOLDS
from resight.tuning.cross_validation import Decision, choose_regulariser, held_out_groups
from resight.tuning.gram import Rows
from resight.workers.executors import Executor, InProcess, run

CHUNK = 4096  # rows a task: its sums (one matrix a camera) are then small beside its work


class Chunk(NamedTuple):
    """Some rows of one group of people, and the name of the file of their sums."""

    group: int
    file: str
    rows: Rows


class LandmarkJob:
    """One fit: who are the landmarks, which chunks there are, what they add up to.

    The model has a `KXQDA` whose `landmarks` are given, and is fitted in place to the training rows
    `source`, whose features have this `fingerprint`. The regulariser is the learner's own, unless
    one is to be chosen.
    """

    def __init__(
        self,
        source: FeatureRows,
        persons: NDArray[Any],
        cameras: NDArray[Any],
        model: Model,
        fingerprint: str,
        *,
        choose: bool,
    ) -> None:
        self.source, self.model = source, model
        self.learner: Any = model.learner
        self.names, self.persons = np.unique(persons, return_inverse=True)
        self.camera_names, self.cameras = np.unique(cameras, return_inverse=True)
        CrossCameraPairs(self.persons, self.cameras)  # refuses labels without pairs
        self.weights = pair_weights(self.persons, self.cameras)
        self.n_folds = CV_FOLDS if choose else 0
        self.groups = np.zeros(len(source), np.intp)
        if choose:
            self.groups = held_out_groups(self.persons, self.cameras, self.n_folds)
        labels = (self.persons.tobytes(), self.cameras.tobytes(), source.index.tobytes())
        parameters = repr(sorted(self.learner.get_params().items()))
        self.digest = digest_of(__version__, fingerprint, *labels, parameters, str(choose))

    def fit(self, store: Path, executor: Executor | None = None) -> Decision | None:
        """Let workers sum up chunks, add them up and learn; return how the regulariser was chosen.

        `store` is a folder that all workers can write to; what a killed fit left there is used. A
        chunk that fails again and again ends the fit: sums without it would be those of other data.
        """
        workers = InProcess() if executor is None else executor
        if workers.send_files:
            raise InputError(
                "these workers are sent file contents (send_files=True), but a landmark fit needs "
                f"a store folder that all workers can write, here {store}. Mount it on every "
                "worker and leave send_files out, or fit on this machine; features that were "
                "extracted are kept"
            )
        folder = store.absolute() / f"landmarks-{self.digest}"
        store.mkdir(parents=True, exist_ok=True)
        workers.check_shared(store.absolute(), None)
        self.place()
        if not (folder / "model").exists():
            folder.mkdir(parents=True, exist_ok=True)
            self.model.save(folder / "model")

        def arguments(chunk: Chunk) -> tuple[Any, ...] | None:
            if (folder / chunk.file).exists():
                return None
            rows = chunk.rows
            labels = self.persons[rows], self.cameras[rows], self.weights[rows]
            return folder, chunk.file, self.source.select(rows), *labels

        chunks = self._chunks()
        with progress("summing up landmark features", len(self.source)) as advance:
            for outcome in run(workers, write_sums, chunks, arguments):
                if outcome.error is not None:
                    raise ResightError(
                        f"{len(outcome.item.rows)} training rows could not be summed up after "
                        f"{outcome.attempts} attempts: "
                        f"{outcome.error or type(outcome.error).__name__}. The other chunks of "
                        f"{len(chunks)} are kept; the same command resumes from there"
                    )
                advance(len(outcome.item.rows))
        parts = []
        for group in np.unique(self.groups):  # in a fixed order, and so are the chunks
            sums = (_read(folder / chunk.file) for chunk in chunks if chunk.group == group)
            parts.append(total(sums).finish(self.camera_names))
        decision = self.finish(parts)
        shutil.rmtree(folder, ignore_errors=True)
        return decision

    def place(self) -> None:
        """Fit the normalisation and take the landmarks."""
        n_features = int(self.learner.landmarks)
        rows = landmark_rows(self.persons, self.cameras, n_features, self.learner.seed)
        if self.model.normalizer is not None:
            self.model.normalizer = self.source.normalizer()
        self.learner.n_features_in_ = self.source.n_features
        chosen = self.model.normalized(self.source.read(rows))
        labels = self.persons[rows], self.cameras[rows]
        self.learner.place_landmarks(chosen, rows, n_features, *labels)

    def _chunks(self) -> list[Chunk]:
        """Cut the rows of each group; a camera's rows lie together, so a chunk has few cameras."""
        found = []
        for group in np.unique(self.groups):
            rows = np.flatnonzero(self.groups == group)
            rows = rows[np.argsort(self.cameras[rows], kind="stable")]
            for i, start in enumerate(range(0, len(rows), CHUNK)):
                found.append(Chunk(group, f"{group}-{i:06d}.npz", rows[start : start + CHUNK]))
        return found

    def finish(self, parts: Sequence[LandmarkStatistics]) -> Decision | None:
        """Choose the regulariser if asked to, and learn."""
        decision = None
        if self.n_folds:
            held = [self._held_out(fold) for fold in range(self.n_folds)]
            decision = choose_regulariser(parts, held, self.learner)
            self.learner.set_params(**{k: decision.chosen[k] for k in ("reg", "reg_form")})
        self.learner.learn_from(total(parts))
        self.learner.persons_ = self.names
        self.learner.training_fingerprint_ = self.digest
        return decision

    def _held_out(self, fold: int) -> tuple[NDArray[np.float64], Rows, Rows]:
        """Landmark features of a fold's rows, their persons and cameras."""
        rows = np.flatnonzero(self.groups == fold)
        features = [
            self.learner.landmark_features(self.model.normalized(block))
            for block in self.source.select(rows).in_blocks()
        ]
        return np.concatenate(features), self.persons[rows], self.cameras[rows]


def write_sums(
    folder: Path, file: str, source: FeatureRows, persons: Rows, cameras: Rows, weights: Any
) -> None:
    """Sum up the features of some rows into a file: what a worker does."""
    model = _model(str(folder / "model"))

    def features(part: slice) -> NDArray[np.float64]:
        rows = model.normalized(source.read(part))
        return model.learner.landmark_features(rows)  # type: ignore[no-any-return]

    sums = add_up(features, persons, cameras, weights, at_once=1024)  # bounds the features held
    with atomic_write(folder / file) as stream:
        np.savez(stream, **vars(sums))


@lru_cache(maxsize=1)
def _model(path: str) -> Any:
    return build(*read(Path(path)), path, finished=False)


def _read(path: Path) -> ChunkSums:
    with np.load(path, allow_pickle=False) as arrays:
        return ChunkSums(**{name: arrays[name] for name in arrays.files})
