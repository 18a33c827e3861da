"""The files of a result, `result.json` and `rankings.csv`, read and checked; runs compared."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from resight.errors import InputError, StoreError
from resight.evaluation.statistics import Comparison, compare_paired
from resight.validation import check_file, parse_json, read_bytes

SCHEMA = "resight.result/1"
JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]
"""What JSON can hold."""
_NEEDED = ("run", "split", "query", "query_camera", "top_paths", "first_rank", "person")


def read_result(folder: str | Path) -> dict[str, Any]:
    """Read `result.json` of a folder, refusing what is no result."""
    file = Path(folder) / "result.json"
    if not file.exists():
        raise StoreError(f"there is no result.json in {folder}; run resight evaluate --out")
    try:
        result = parse_json(read_bytes(file))
        schema = result["schema"]
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"{file} is damaged; evaluate again") from None
    if schema != SCHEMA:
        raise StoreError(f"{file} has schema {schema!r}; this resight reads {SCHEMA!r}")
    return dict(result)


def read_rankings(path: Path) -> list[dict[str, str]]:
    """Read `rankings.csv`, refusing a file that is none."""
    try:
        with check_file(path).open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}; evaluate again") from error
    missing = [name for name in _NEEDED if not rows or rows[0].get(name) is None]
    if missing:
        raise InputError(f"{path} has no column {', '.join(missing)}; run the evaluation again")
    return rows


def compare_runs(result: dict[str, Any], *runs: dict[str, Any]) -> Comparison:
    """Compare rank 1 of two runs of a result over its splits; see `compare_paired`."""
    protocol = result["protocol"]
    fraction = protocol["query_people"] / (protocol["query_people"] + protocol["train_people"])
    a, b = ([trial["cmc"]["1"] for trial in run["trials"]] for run in runs)
    return compare_paired(a, b, fraction)
