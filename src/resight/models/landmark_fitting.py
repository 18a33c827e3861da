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
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

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
from resight.learners.kxqda import KXQDA
from resight.models.model import Model
from resight.tuning.candidates import CV_FOLDS
from resight.tuning.cross_validation import Choice
from resight.tuning.gram import Rows
from resight.tuning.landmark_choice import choose_regulariser, held_out_groups, regularisers
from resight.workers.executors import Executor, InProcess, run

CHUNK = 4096  # rows a task: its sums (one matrix a camera) are then small beside its work


@dataclass(frozen=True)
class Chunk:
    """Some rows of one group of people."""

    group: int
    number: int
    rows: Rows

    @property
    def file(self) -> str:
        """Name of its file of sums."""
        return f"{self.group}-{self.number:06d}.npz"


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
        self.names, self.persons = np.unique(persons, return_inverse=True)
        self.camera_names, self.cameras = np.unique(cameras, return_inverse=True)
        self.learner = _landmark_learner(model)
        CrossCameraPairs(self.persons, self.cameras)  # refuses labels without pairs
        self.weights = pair_weights(self.persons, self.cameras)
        self.n_folds = CV_FOLDS if choose else 0
        self.groups = np.zeros(len(source), np.intp)
        if choose:
            self.groups = held_out_groups(self.persons, self.cameras, self.n_folds)
        labels = (self.persons.tobytes(), self.cameras.tobytes(), source.index.tobytes())
        self.digest = digest_of(
            __version__,
            fingerprint,
            *labels,
            repr(sorted(self.learner.get_params().items())),
            str(choose),
        )

    def place(self) -> None:
        """Fit the normalisation and take the landmarks."""
        n_features = int(self.learner.landmarks or 0)
        rows = landmark_rows(self.persons, self.cameras, n_features, self.learner.seed)
        if self.model.normalizer is not None:
            self.model.normalizer = self.source.normalizer()
        self.learner.n_features_in_ = self.source.n_features
        chosen = self.model.normalized(self.source.read(rows))
        labels = self.persons[rows], self.cameras[rows]
        self.learner.place_landmarks(chosen, rows, n_features, *labels)

    def chunks(self) -> list[Chunk]:
        """Cut the rows of each group; a camera's rows lie together, so a chunk has few cameras."""
        found = []
        for group in np.unique(self.groups):
            rows = np.flatnonzero(self.groups == group)
            rows = rows[np.argsort(self.cameras[rows], kind="stable")]
            cuts = range(0, len(rows), CHUNK)
            found += [Chunk(int(group), i, rows[a : a + CHUNK]) for i, a in enumerate(cuts)]
        return found

    def arguments(self, chunk: Chunk, folder: Path) -> tuple[Any, ...] | None:
        """Return what `write_sums` needs for a chunk; None when its file is there already."""
        if (folder / chunk.file).exists():
            return None
        rows = chunk.rows
        labels = self.persons[rows], self.cameras[rows], self.weights[rows]
        return folder, chunk.file, self.source.select(rows), *labels

    def statistics(self, chunks: Sequence[Chunk], folder: Path) -> list[LandmarkStatistics]:
        """Add up the files of each group, in a fixed order."""
        return [
            total(_read(folder / chunk.file) for chunk in chunks if chunk.group == group).finish(
                self.camera_names
            )
            for group in np.unique(self.groups)
        ]

    def finish(self, parts: Sequence[LandmarkStatistics]) -> Choice | None:
        """Choose the regulariser if asked to, and learn."""
        choice = None
        if self.n_folds:
            choice = choose_regulariser(
                parts, self._held_out(), self.learner.nystrom_.centre, regularisers(self.learner)
            )
            self.learner.set_params(reg=choice.best.reg, reg_form=choice.best.reg_form)
        self.learner.learn_from(total(parts))
        self.learner.persons_ = self.names
        self.learner.training_fingerprint_ = self.digest
        return choice

    def _held_out(self) -> list[tuple[NDArray[np.float64], Rows, Rows]]:
        found = []
        for fold in range(self.n_folds):
            rows = np.flatnonzero(self.groups == fold)
            source = self.source.select(rows)
            features = [
                self.learner.landmark_features(self.model.normalized(block))
                for block in source.in_blocks()
            ]
            found.append((np.concatenate(features), self.persons[rows], self.cameras[rows]))
        return found


def fit_landmark_model(
    job: LandmarkJob, store: Path, executor: Executor | None = None
) -> Choice | None:
    """Let workers sum up chunks, add them up and learn; return how the regulariser was chosen.

    `store` is a folder that all workers can write to; what a killed fit left there is used. A chunk
    that fails again and again ends the fit: sums without it would be those of other data.
    """
    workers = InProcess() if executor is None else executor
    if workers.send_files:
        raise InputError(
            "these workers are sent file contents (send_files=True), but a landmark fit needs a "
            f"store folder that all workers can write, here {store}. Mount it on every worker and "
            "leave send_files out, or fit on this machine; features that were extracted are kept"
        )
    folder = store.absolute() / f"landmarks-{job.digest}"
    store.mkdir(parents=True, exist_ok=True)
    workers.check_shared(store.absolute(), None)
    job.place()
    if not (folder / "model").exists():
        folder.mkdir(parents=True, exist_ok=True)
        job.model.save(folder / "model")
    chunks = job.chunks()
    with progress("summing up landmark features", len(job.source)) as advance:
        for outcome in run(workers, write_sums, chunks, lambda one: job.arguments(one, folder)):
            if outcome.error is not None:
                raise ResightError(
                    f"{len(outcome.item.rows)} training rows could not be summed up after "
                    f"{outcome.attempts} attempts: {outcome.error or type(outcome.error).__name__}."
                    f" The other chunks of {len(chunks)} are kept; the same command resumes from "
                    "there"
                )
            advance(len(outcome.item.rows))
    choice = job.finish(job.statistics(chunks, folder))
    shutil.rmtree(folder, ignore_errors=True)
    return choice


def write_sums(
    folder: Path, file: str, source: FeatureRows, persons: Rows, cameras: Rows, weights: Any
) -> None:
    """Sum up the features of some rows into a file: what a worker does."""
    model = _model(str(folder / "model"))
    learner = _landmark_learner(model)

    def features(part: slice) -> NDArray[np.float64]:
        return learner.landmark_features(model.normalized(source.read(part)))

    sums = add_up(features, persons, cameras, weights, at_once=1024)  # bounds the features held
    with atomic_write(folder / file) as stream:
        np.savez(stream, **vars(sums))


@lru_cache(maxsize=1)
def _model(path: str) -> Model:
    from resight.models.files import load

    model: Model = load(path, finished=False)
    return model


def _read(path: Path) -> ChunkSums:
    with np.load(path, allow_pickle=False) as arrays:
        return ChunkSums(**{name: arrays[name] for name in arrays.files})


def _landmark_learner(model: Model) -> KXQDA:
    if not isinstance(model.learner, KXQDA) or model.learner.landmarks is None:
        raise InputError("landmarks are a parameter of the learner kxqda; choose it, or none")
    return model.learner
