"""Measure what shortening vectors costs where nothing is learned; prints a table of docs/auto.md.

    python scripts/shortening.py DATA OUT

OUT/features holds descriptors as `resight reproduce` keeps them. Everybody is normalised by 10
training people, as in docs/choosing.md, and compared by Euclidean distances of whole vectors and
of vectors shortened with other random signs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from choosing import DESCRIPTORS, SETS, Bench
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resight import BlockNormalizer
from resight.experiments.tables import markdown_table
from resight.features.store import Features, FeatureStore
from resight.learners.normalizer import block_slices
from resight.protocols import Split
from resight.tuning.sketch import WIDTH

PEOPLE, DRAWS, WIDTHS = 10, 8, (WIDTH, 4 * WIDTH + 3)
Floats = NDArray[np.float32]


def main(data: Path, out: Path) -> None:
    """Print mean and range over draws of signs, for each dataset and width."""
    rows = []
    with threadpool_limits(1):
        for name in SETS:
            bench = Bench(data, out, name)
            features = FeatureStore(out / "features").ensure(bench.sightings, DESCRIPTORS, False)
            costs = np.mean([_costs(bench, features, split) for split in _splits(bench)], axis=0)
            cells = [f"{c.mean():+.1f} ({c.min():+.1f} to {c.max():+.1f})" for c in costs]
            rows.append([name, *cells])
            print(*rows[-1], file=sys.stderr, flush=True)
    print(markdown_table(("dataset", *(f"{width} numbers" for width in WIDTHS)), rows))


def _splits(bench: Bench) -> list[Split]:
    return [split for _, split, people in bench._jobs() if people == PEOPLE]


def _costs(bench: Bench, features: Features, split: Split) -> NDArray[np.float64]:
    """Rank 1 of shortened minus that of whole vectors, (widths, draws)."""
    X, n = np.asarray(features.features), len(split.query)
    persons = bench.sightings.persons
    normalizer = BlockNormalizer(blocks=features.blocks).fit(X[split.train])
    Z = np.asarray(normalizer.transform(X[np.concatenate([split.query, split.gallery])]))
    same = persons[split.query][:, None] == persons[split.gallery]
    whole = _rank1(Z[:n], Z[n:], same)
    shared = [len(blocks) for blocks in features.blocks_of_parts for _ in blocks]
    found = []
    for width in WIDTHS:
        for draw in range(DRAWS):
            rng = np.random.default_rng(draw)
            slices = block_slices(features.blocks, Z.shape[1])
            parts = [
                _shortened(Z[:, s], width // k, rng) for s, k in zip(slices, shared, strict=True)
            ]
            short = np.concatenate(parts, axis=1)
            found.append(_rank1(short[:n], short[n:], same) - whole)
    return np.reshape(found, (len(WIDTHS), DRAWS))


def _shortened(block: Floats, width: int, rng: np.random.Generator) -> Floats:
    """Add features a fixed number apart, with random signs, as `resight.tuning.sketch` does."""
    n, d = block.shape
    if d <= width:
        return block
    signed = block * rng.choice(np.array([-1, 1], np.float32), d)
    padded = np.pad(signed, ((0, 0), (0, -d % width)))
    return padded.reshape(n, -1, width).sum(axis=1)


def _rank1(Q: Floats, G: Floats, same: NDArray[np.bool_]) -> float:
    nearest = (np.square(G).sum(axis=1) - 2.0 * Q @ G.T).argmin(axis=1)
    return 100.0 * float(same[np.arange(len(Q)), nearest].mean())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python scripts/shortening.py DATA OUT")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
