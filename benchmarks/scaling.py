"""Past one machine: what a million to a billion sightings would cost, on a page of its own.

Measured costs of single steps on this machine, assumptions, a simulation, and how to spread the
work over the machines of others.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks._costs import BATCH, DIMENSIONS, LANDMARKS, Costs, measure
from benchmarks._simulation import Town, needed_machines, needed_workers, rate
from benchmarks.machine import description
from resight._files import atomic_write
from resight.learners._landmarks import EXACT_LIMIT

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scaling.md"
GUIDE = Path(__file__).with_name("scaling_guide.md")
TOWNS = (Town(1e6, 1e4, 0.1), Town(1e8, 1e5, 1.0), Town(1e9, 1e6, 10.0))
CLUSTERS = (1e7, 1e8, 1e9)  # sightings, all of which are searched
_MARK = "<!-- costs "
_EXACT_BYTES = 5 * 8  # times N^2: kernel matrix, two matrices of the pencil, work space


def run() -> str:
    """Measure, simulate and write docs/scaling.md; return what stands in docs/benchmarks.md."""
    costs = measure()
    with atomic_write(PAGE, "w") as stream:
        stream.write(page(costs))
    return (
        "The page [scaling.md](scaling.md) is written by this command: costs measured in this run, "
        "a model and a simulation up to a billion sightings, and a guide to other machines."
    )


def page(costs: Costs) -> str:
    """Return the whole page."""
    parts = [
        "# Past one machine",
        f"Written by `python -m benchmarks scaling`, with figures of that run ({description()}). "
        "`python scripts/scaling.py` simulates again from these figures, for your own numbers.",
        f"{_MARK}{json.dumps(asdict(costs))} -->",
        "## Measured",
        measured_table(costs),
        "## Reckoned and simulated",
        table(costs, TOWNS),
        assumptions(costs),
        "## Exact search over a cluster",
        cluster_table(costs),
        GUIDE.read_text(encoding="utf-8").strip(),
    ]
    return "\n\n".join(parts) + "\n"


def read_costs(page: Path = PAGE) -> Costs:
    """Return the figures of the run that wrote the page."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith(_MARK):
            found = json.loads(line[len(_MARK) : -len(" -->")])
            found["exact"] = tuple((int(n), float(t)) for n, t in found["exact"])
            return Costs(**found)
    raise RuntimeError(f"{page} holds no figures; run python -m benchmarks scaling")


def measured_table(costs: Costs) -> str:
    """Processor time of single steps."""
    sizes = ", ".join(f"{seconds:.2f} s at N = {n:,}" for n, seconds in costs.exact)
    rows = [
        ("describe a picture (gog+lomo-dagger), reading included", f"{1e3 * costs.image:.1f} ms"),
        (
            f"embed it through {LANDMARKS:,} landmark features (gog+lomo-dagger)",
            f"{1e3 * costs.embedding:.1f} ms",
        ),
        ("exact fit, kernel matrix given", f"{sizes}: N^{costs.exact_exponent:.1f} at the end"),
        (
            f"landmark fit, each labelled sighting (m = {LANDMARKS:,})",
            f"{1e3 * costs.landmark_row:.1f} ms, of which {1e3 * costs.sums:.2f} ms for the sums",
        ),
        ("landmark fit, its pencil, once for each lambda tried", f"{costs.pencil:.1f} s"),
        (
            f"search, exact, each million embeddings of {DIMENSIONS} dimensions",
            f"{1e9 * costs.scan:.0f} ms",
        ),
        (f"the same in a batch of {BATCH}, each query", f"{1e9 * costs.batch:.0f} ms"),
        ("reading a million embeddings from SQLite into a part", f"{1e6 * costs.read:.1f} s"),
    ]
    lines = ["| step | processor time, one thread |", "|---|---|"]
    return "\n".join([*lines, *(f"| {step} | {cost} |" for step, cost in rows)])


def table(costs: Costs, towns: tuple[Town, ...]) -> str:
    """Simulate each town; return Markdown."""
    lines = [
        "| sightings kept | pictures a second (busiest) | workers | 95% wait | done again | "
        "to learn from | exact fit | landmark fit, these workers | embeddings | descriptors | "
        "search machines | search, median / 95% |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(_row(costs, town) for town in towns)])


def cluster_table(costs: Costs) -> str:
    """Count the machines that hold all embeddings, and reckon what they take."""
    town, full = TOWNS[0], 0.75
    lines = [
        "`resight search` and `serve --cluster` ([how](clusters.md)): every core of a machine is a "
        f"worker, machines have {town.cores} cores and {town.memory / 1e9:.0f} GB as above, "
        f"{100 * full:.0f}% of it for embeddings. Nothing is left out: every search compares all "
        "sightings, and a filter by time or camera only makes it quicker. Without spare machines: "
        "what a lost one held is read again by the others, which need room for it.",
        "",
        f"| sightings | embeddings | machines | workers | one query | batch of {BATCH} | "
        "reading all parts | the process that asks |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for n in CLUSTERS:
        size = 4.0 * DIMENSIONS * n
        machines = max(1, math.ceil(size / (full * town.memory)))
        each = n / machines / town.speedup  # embeddings, as if for one core
        cells = (
            f"{n:.0e}".replace("e+0", "e"),
            _size(size),
            f"{machines:,}",
            f"{machines * town.cores:,}",
            _duration(each * costs.scan),
            _duration(each * costs.batch * BATCH),
            _duration(each * costs.read),
            _size(n * costs.row),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(
        [
            *lines,
            "",
            "Measured: comparing, reading, and the bytes that the process that asks keeps of every "
            "sighting beside its embedding (names, times, labels). Reckoned: the rest; messages "
            "between machines and a database that many workers read at once are not in it. Where "
            "that process would need more than a machine has, split the gallery by month or site "
            "(below) and give each its own.",
        ]
    )


def _row(costs: Costs, town: Town) -> str:
    taken = needed_workers(town, costs.image + costs.embedding)
    found = needed_machines(town, costs.scan, 4.0 * DIMENSIONS)
    clock = np.arange(0.0, 86_400.0, 60.0)
    n = town.labelled
    exact = f"{_duration(costs.exact_fit(n))}, {_size(_EXACT_BYTES * n * n)}"
    if n > EXACT_LIMIT:
        exact = f"({exact})"
    landmark = n * costs.landmark_row / taken.workers + 18 * costs.pencil  # 6 lambdas, 3 folds
    cells = (
        f"{town.sightings:.0e}".replace("e+0", "e"),
        f"{town.mean_rate:.3g} ({rate(town, clock).max():.3g})",
        f"{taken.workers:,}",
        f"{taken.wait:.0f} s",
        f"{taken.again:.1e}",
        f"{n:,.0f}",
        exact,
        _duration(landmark),
        _size(town.sightings * 4 * DIMENSIONS),
        _size(town.sightings * 4 * costs.features),
        f"{found.machines:,}",
        f"{found.median:.2g} / {found.p95:.2g} s",
    )
    return f"| {' | '.join(cells)} |"


def assumptions(costs: Costs) -> str:
    """Say everything that was assumed and not measured."""
    town = TOWNS[0]
    return "\n".join(
        [
            "Measured: the costs above. Assumed:",
            "",
            f"- Sightings are forgotten after {town.days:.0f} days, so the number kept sets how "
            f"many come in. They follow the hour of the day; the busiest hour has about "
            f"{town.busiest} times the mean.",
            f"- A worker is one core as fast as this one. It fails once in "
            f"{town.lifetime / 86400:.0f} days on average, loses half of the chunk in its hands "
            f"and is replaced after {town.repair / 60:.0f} minutes. There are as many as keep "
            f"95% of the pictures from waiting longer than {town.delay:.0f} s (simulated: two "
            "days in steps of ten seconds, Poisson arrivals).",
            "- Embeddings lie in the memory of search machines: "
            f"{town.memory / 1e9:.0f} GB and {town.cores} cores each, which scan "
            f"{town.speedup:.0f} times as fast as one core because they share the memory. Every "
            "shard has a copy; a search takes the copy that is free first, and its answer waits "
            f"for the slowest shard (log-normal, spread {town.spread}; simulated: 2,000 "
            "searches at random times). "
            + ", ".join(f"{one.searches:g}" for one in TOWNS)
            + " searches a second in the three rows.",
            f"- A search looks at {100 * town.share:.0f}% of the embeddings: a day or two and "
            "some of the cameras. Without such a filter it costs "
            f"{1 / town.share:.0f} times as much, or needs the engine's approximate index.",
            "- People to learn from are labelled by hand, so their number is far below that of "
            f"sightings. The exact fit grows as N^3 and needs about five N x N matrices; above "
            f"{EXACT_LIMIT:,} sightings resight uses landmarks (figures in brackets are what exact "
            "would take). The landmark fit is linear in N; 18 pencils choose lambda.",
            f"- Descriptors ({4 * costs.features / 1e3:.0f} kB a sighting) are the largest part. "
            "A gallery keeps them so that a new model needs no images; `whos-star` would take "
            "12 kB. Crops (about 4 kB as JPEG) come on top.",
            "- Network, disks, back-ups, PostgreSQL's own overhead and people's work are not in "
            "the table. Nothing above a few hundred thousand sightings was run here: rows are "
            "a plan, not a measurement.",
        ]
    )


def _duration(seconds: float) -> str:
    for unit, name in ((31_557_600, "years"), (86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def _size(size: float) -> str:
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1e6:.3g} MB"


if __name__ == "__main__":
    print(page(measure()))
