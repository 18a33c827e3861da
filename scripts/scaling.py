"""Print the table of docs/scaling.md again, or for your own numbers.

    python scripts/scaling.py
    python scripts/scaling.py --sightings 5e7 --labelled 20000 --searches 2 --days 14

It simulates from the costs that `python -m benchmarks scaling` measured and wrote to that page.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package `benchmarks`

from benchmarks._simulation import Town
from benchmarks.scaling import TOWNS, cluster_table, measured_table, read_costs, table


def main() -> None:
    """Read the options, simulate, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for field in fields(Town):
        parser.add_argument(f"--{field.name}", type=float, help="see the class Town")
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    towns = TOWNS
    if given:
        towns = (Town(**{"sightings": 1e8, "labelled": 1e5, "searches": 1.0, **given}),)
    costs = read_costs()
    print(measured_table(costs), "", table(costs, towns), "", cluster_table(costs), sep="\n")


if __name__ == "__main__":
    main()
