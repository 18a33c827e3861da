"""What a user would pick instead, on the same work: faiss, usearch, metric-learn, a network.

The other packages are no dependencies: they are installed into an environment of their own,
``build/alternatives``, with this checkout and a scikit-learn that metric-learn still runs with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._pages import DOCS
from benchmarks._peers import COMPONENTS, KEPT, PEOPLE, SHOTS, SIMILAR
from benchmarks.gallery import BATCH, K, N, R
from benchmarks.machine import best_cpu_seconds
from benchmarks.network import OSNET, small_network
from resight.datasets.synthetic import draw_person
from resight.descriptors import Network, descriptor
from resight.errors import InputError

ROOT = DOCS.parent
PLACE = ROOT / "build" / "alternatives"
# scikit-learn 1.8 took away an argument that metric-learn 0.7.0, its last version, gives.
PACKAGES = ("faiss-cpu", "usearch", "metric-learn==0.7.0", "scikit-learn<1.8")
IMAGES, ROUNDS = 32, 5
LIMIT = 1.3  # times faiss


def run() -> str:
    """Measure and write tables."""
    measured = _beside_peers()
    versions = ", ".join(f"{name} {number}" for name, number in measured["versions"].items())
    lines = [
        "Processor time of one thread, best of some rounds by turns; both sides in one process "
        f"and one environment ({versions}), vectors of images apart.",
        "",
        *_search_table(measured["search"]),
        "",
        *_learner_table(measured["learners"]),
        "",
        "k-XQDA has no other implementation to pick; the first section of this page has it beside "
        "the plain statement of its paper.",
        "",
        *_vectors(),
    ]
    return "\n".join(lines)


def _beside_peers() -> dict[str, Any]:
    """Install the other packages and run `benchmarks._peers` beside them."""
    python = PLACE / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "-e", str(ROOT), *PACKAGES]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(PLACE)], check=True)
        subprocess.run(install, check=True)
    except subprocess.CalledProcessError as error:
        raise InputError(
            f"{', '.join(PACKAGES)} could not be installed into {PLACE} (pip says above why); let "
            "pip reach a package index (PIP_INDEX_URL, PIP_FIND_LINKS), or leave this section out "
            "by naming others: python -m benchmarks SECTION ..."
        ) from error
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [str(python), "-m", "benchmarks._peers"],
        cwd=ROOT,
        env=os.environ | threads | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        check=True,
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def _search_table(search: dict[str, Any]) -> list[str]:
    lines = [
        f"| exact search, {N:,} x {R}, top {K} | resight | faiss-cpu `IndexFlatL2` | usearch exact "
        f"| resight / faiss, at most {LIMIT} | resight / usearch |",
        "|---|---|---|---|---|---|",
    ]
    missed = []
    for words, seconds in zip(
        ("one query", f"batch of {BATCH}"), search["seconds"].values(), strict=True
    ):
        ours, flat, other = (seconds[name] for name in ("resight", "faiss", "usearch"))
        lines.append(
            f"| {words} | {1e3 * ours:.1f} ms | {1e3 * flat:.1f} ms | {1e3 * other:.1f} ms "
            f"| {ours / flat:.2f} | {ours / other:.2f} |"
        )
        if ours / flat > LIMIT:
            missed.append(words)
    same = search["same"]
    lines += [
        "",
        f"Neighbours of the batch that are the same in the same place: faiss {same['faiss']:.2%}, "
        f"usearch {same['usearch']:.2%}; any others are as far, to what float32 can tell. Only "
        "resight orders them by distances in float64."
        + (f" **Slower than wanted: {' and '.join(missed)}.**" if missed else ""),
    ]
    return lines


def _learner_table(learners: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| learner | fit, resight | fit, metric-learn | times faster | rank 1, resight "
        "| rank 1, metric-learn |",
        "|---|---|---|---|---|---|",
    ]
    for row in learners:
        seconds, rank1 = row["seconds"], row["rank1"]
        ours, theirs = (seconds.get(side) for side in ("resight", "metric-learn"))
        cells = (
            "-" if ours is None else f"{ours:.3f} s",
            "-" if theirs is None else f"{theirs:.3f} s",
            "-" if theirs is None else f"{theirs / ours:.1f}",
            f"{rank1['resight']:.1%}",
            f"{rank1['metric-learn']:.1%}" if "metric-learn" in rank1 else "-",
        )
        lines.append(f"| {row['name']} | {' | '.join(cells)} |")
    return [
        *lines,
        "",
        f"{PEOPLE} drawn people, {SHOTS} sightings by each of two cameras, {COMPONENTS} principal "
        f"components of whos-star; rank 1 of {PEOPLE} others across the cameras. metric-learn has "
        "no XQDA and knows no cameras. Settings are defaults but for: LFDA, the same "
        f"{KEPT} directions and scaling, and the farthest sighting of a person as local scale, as "
        "resight takes it where there are so few; LMNN, one target neighbour as resight; ITML, "
        f"{SIMILAR:,} similar and as many dissimilar pairs drawn, where metric-learn would draw "
        f"{20 * PEOPLE**2:,} and resight takes all {(PEOPLE * SHOTS) ** 2:,} pairs across the "
        "cameras.",
    ]


def _vectors() -> list[str]:
    """Time vectors of the same images by a network and by GOG."""
    images = [draw_person(person) for person in range(IMAGES)]
    gog = descriptor("gog")
    with tempfile.TemporaryDirectory() as name:
        file = OSNET if OSNET.is_file() else small_network(Path(name) / "small.onnx")
        network = Network(file)
        size = min(network.batch, IMAGES)
        batches = [images[start : start + size] for start in range(0, IMAGES, size)]
        ready = [network.preprocessing.batch(batch) for batch in batches]
        works = {
            "GOG": lambda: [gog.describe(image) for image in images],
            f"{network.name} by resight": lambda: [network.describe_batch(b) for b in batches],
            f"{network.name} by onnxruntime alone": lambda: [network.session.run(b) for b in ready],
        }
        for work in works.values():
            work()  # compiles, and fills caches
        best = best_cpu_seconds(works, ROUNDS)
    base = best["GOG"]
    return [
        "| vectors of images, 128 x 64 pixels | ms an image | to GOG |",
        "|---|---|---|",
        *(
            f"| {name} | {1e3 * seconds / IMAGES:.2f} | {seconds / base:.2f} |"
            for name, seconds in best.items()
        ),
        "",
        "The network resizes images to what it was trained on; onnxruntime alone gets them ready.",
    ]


if __name__ == "__main__":
    print(run())
