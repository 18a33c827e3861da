"""The part of ``benchmarks.alternatives`` that runs where the other packages are installed.

Both sides work in one process, by turns, on one thread and the same arrays; it writes JSON.
"""

from __future__ import annotations

import json
import sys
import warnings
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gallery import BATCH, K, N, R, drawn, people
from benchmarks.machine import best_cpu_seconds
from resight import ITML, LFDA, LMNN, XQDA
from resight.datasets.synthetic import draw_person
from resight.descriptors import descriptor
from resight.evaluation import cmc
from resight.gallery.index import ExactIndex, squared

ROUNDS, ROUNDS_OF_FITS = 9, 2
PEOPLE, SHOTS, COMPONENTS, KEPT = 200, 2, 100, 40
SIMILAR = PEOPLE * SHOTS * (2 * SHOTS - 1)  # pairs
SAME = 1e-5  # relative difference of distances that float32 cannot tell apart


def search() -> dict[str, Any]:
    """Time exact searches; refuse neighbours that are farther than ours."""
    import faiss
    import usearch.index

    faiss.omp_set_num_threads(1)
    embeddings, _ = people(N)
    rng = np.random.default_rng(1)
    queries = embeddings[rng.choice(N, BATCH, replace=False)]
    queries += np.float32(0.3) * drawn(rng, BATCH, 14.0)
    index, flat = ExactIndex(embeddings), faiss.IndexFlatL2(R)
    flat.add(embeddings)
    found: dict[str, NDArray[np.intp]] = {}

    def ours(some: NDArray[np.float32]) -> None:
        found["resight"] = np.array([rows for rows, _ in index.search(some, K)])

    def by_faiss(some: NDArray[np.float32]) -> None:
        found["faiss"] = flat.search(some, K)[1]

    def by_usearch(some: NDArray[np.float32]) -> None:
        metric = usearch.index.MetricKind.L2sq
        matches = usearch.index.search(embeddings, some, K, metric, exact=True, threads=1)
        found["usearch"] = matches.keys.reshape(-1, K)

    ways = {"resight": ours, "faiss": by_faiss, "usearch": by_usearch}
    seconds = {}
    for count in (1, BATCH):
        works = {name: partial(way, queries[:count]) for name, way in ways.items()}
        seconds[count] = best_cpu_seconds(works, ROUNDS)
    same = {name: float((rows == found["resight"]).mean()) for name, rows in found.items()}
    for name, rows in found.items():
        for query, theirs, mine in zip(queries, rows, found["resight"], strict=True):
            far, near = (squared(embeddings[r.astype(np.intp)], query) for r in (theirs, mine))
            if not np.allclose(far, near, rtol=SAME):
                raise RuntimeError(f"{name} finds other neighbours: {far} instead of {near}")
    return {"seconds": seconds, "same": same}


def learners() -> list[dict[str, Any]]:
    """Time fits on the same rows; count how often other people are found across cameras."""
    import metric_learn

    X, T, persons, cameras = _described()
    pairs: dict[str, tuple[Any, Any]] = {
        "XQDA": (XQDA(), None),
        "LFDA": (
            LFDA(n_components=KEPT),
            metric_learn.LFDA(n_components=KEPT, k=2 * SHOTS - 1, embedding_type="plain"),
        ),
        "ITML": (ITML(), metric_learn.ITML_Supervised(n_constraints=SIMILAR, random_state=0)),
        "LMNN": (LMNN(), metric_learn.LMNN(n_neighbors=1, random_state=0)),
    }
    rows = []
    for name, (mine, theirs) in pairs.items():
        works = {"resight": partial(mine.fit, X, persons, cameras)}
        if theirs is not None:
            works["metric-learn"] = partial(theirs.fit, X, persons)
        seconds = best_cpu_seconds(works, ROUNDS_OF_FITS)
        fitted = {"resight": mine, "metric-learn": theirs}
        rank1 = {side: _rank1(fitted[side].transform(T)) for side in works}
        rows.append({"name": name, "seconds": seconds, "rank1": rank1})
    rows.append({"name": "Euclidean", "seconds": {}, "rank1": {"resight": _rank1(T)}})
    return rows


def _described() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Principal components of drawn people to train on and of as many others to look for."""
    chosen = descriptor("whos-star")
    train = [(p, c, s) for c in range(2) for s in range(SHOTS) for p in range(PEOPLE)]
    test = [(PEOPLE + p, c, 0) for c in range(2) for p in range(PEOPLE)]
    drawn = [draw_person(p, c, shot=s) for p, c, s in train + test]
    rows = chosen.transform(drawn).astype(np.float64)
    rows -= rows[: len(train)].mean(axis=0)
    _, _, directions = np.linalg.svd(rows[: len(train)], full_matrices=False)
    Z = rows @ directions[:COMPONENTS].T
    Z /= Z[: len(train)].std()  # metric-learn's steps and bounds mean something at unit scale only
    labels = np.array(train)
    return Z[: len(train)], Z[len(train) :], labels[:, 0], labels[:, 1]


def _rank1(E: NDArray[Any]) -> float:
    first, second = np.split(E, 2)
    D = ((first[:, None] - second) ** 2).sum(axis=2)
    who = np.arange(len(first))
    return float(np.mean([cmc(both, who, who)[0] for both in (D, D.T)]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # metric-learn calls scikit-learn in ways that are to go
    names = ("faiss-cpu", "usearch", "metric-learn", "scikit-learn")
    json.dump(
        {
            "search": search(),
            "learners": learners(),
            "versions": {name: version(name) for name in names},
        },
        sys.stdout,
    )
