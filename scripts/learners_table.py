"""Write rank 1 of every learner on gog+lomo into docs/learners.md.

python scripts/learners_table.py --data DIR --out OUT [--dataset grid,prid450s] [--slow]

Every finished split is kept in OUT, so that an interrupted run goes on where it was, and what was
measured before is shown without measuring it again. Learners that take hours on CUHK01 are left to
--slow. Settings are the defaults of each learner, but MLAPG's arithmetic: nothing is chosen here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from resight._files import atomic_write
from resight.experiments.tables import markdown_table
from resight.plans import FROM_TRAINING, Plan
from resight.registry import AUTO, LEARNERS
from resight.reproduce.measuring import Bench
from resight.reproduce.paper import Job

PAGE = Path(__file__).resolve().parents[1] / "docs" / "learners.md"
BEGIN, END = "<!-- written by scripts/learners_table.py -->\n", "<!-- end of the table -->"
DESCRIPTORS = ("gog", "lomo")
PROTOCOLS = {
    "grid": "grid",
    "prid450s": "prid450s",
    "prid2011": "prid2011",
    "cuhk01": "cuhk01-single-shot",
}
FASTER = {"mlapg": {"precision": "float32"}}  # as in the paper's tables: half the time, equal ranks
PLANS = [Plan(name, params=FASTER.get(name, {})) for name in LEARNERS if name != AUTO]
PLANS += [Plan(name, rerank=method) for name in ("xqda", "kxqda") for method in FROM_TRAINING]


def table(bench: Bench, root: Path) -> str:
    """Return the table of what has been measured so far."""
    rows = []
    for plan in PLANS:
        after = "" if plan.rerank is None else f", then {plan.rerank}"
        rows.append([plan.spec.title + after, *(_cell(bench, root, d, plan) for d in PROTOCOLS)])
    return markdown_table(("learner", *PROTOCOLS), rows)


def _cell(bench: Bench, root: Path, dataset: str, plan: Plan) -> str:
    stored = (root / dataset).exists()
    found = bench.known(_job(dataset, plan)) if stored else None
    if found is None:
        return "-"
    rank1 = found["summary"]["rank1"]
    return f"{rank1['mean']:.1f} ± {rank1['sd']:.1f}"


def _job(dataset: str, plan: Plan) -> Job:
    return Job(dataset, PROTOCOLS[dataset], DESCRIPTORS, plan)


def _written(text: str) -> None:
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    with atomic_write(PAGE, "w") as stream:
        stream.write(before + BEGIN + text + "\n" + END + rest.partition(END)[2])


def main() -> None:
    """Measure what is missing, and write the table after each dataset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the datasets")
    parser.add_argument("--out", type=Path, required=True, help="where runs are kept")
    parser.add_argument("--dataset", default=",".join(PROTOCOLS), help="some of them")
    parser.add_argument("--slow", action="store_true", help="learners that take hours as well")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    bench = Bench(given.data, given.out, given.jobs, None, print)
    measured = given.out / "measured"  # which datasets' features exist: others are not described
    for dataset in given.dataset.split(","):
        for plan in sorted(PLANS, key=lambda plan: plan.spec.effort):
            if given.slow or not (dataset == "cuhk01" and plan.spec.effort > 1):
                bench.measure(_job(dataset, plan))
        (measured / dataset).mkdir(parents=True, exist_ok=True)
        _written(table(bench, measured))


if __name__ == "__main__":
    main()
