"""The paper's tables: which rows they have, and how each is measured here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from resight.errors import unknown_name
from resight.experiments.candidates import CV, CV_FOLDS
from resight.experiments.registry import LEARNERS
from resight.experiments.runner import Plan

_PROTOCOLS = {
    ("cuhk01", "single-shot"): "cuhk01-single-shot",
    ("cuhk01", "multi-shot"): "cuhk01-multi-shot",
    ("prid450s", "single-shot"): "prid450s",
    ("grid", "single-shot"): "grid",
    ("prid2011", "single-shot"): "prid2011",
}


@dataclass(frozen=True)
class PaperRow:
    """One printed row: a learner on some descriptors, with the printed figures in percent."""

    learner: str
    title: str
    descriptors: tuple[str, ...]
    printed: dict[str, float]
    inferred: bool  # the paper does not say which descriptor

    def plans(self) -> list[Plan]:
        """All versions in which this row is measured; none if the learner is missing.

        Versions of k-XQDA are fixed: `paper` is the authors' kernel and regulariser,
        `paper-poly` the polynomial the paper names beside it, `cv` is chosen in each split.
        """
        if self.learner not in LEARNERS:
            return []
        if self.learner == "kxqda":
            poly = {"kernel": "poly", "degree": 2, "coef0": 1.0}
            return [
                Plan("kxqda", "paper"),
                Plan("kxqda", "paper-poly", poly),
                Plan("kxqda", "cv", {}, CV, CV_FOLDS),
            ]
        if self.learner == "xqda":
            return [Plan("xqda-raw", "raw"), Plan("xqda", "normalized")]
        if self.learner == "mlapg":
            return [Plan("mlapg", params={"precision": "float32"})]  # half the time, equal ranks
        return [Plan(self.learner)]


@dataclass(frozen=True)
class PaperTable:
    """One printed table."""

    name: str
    title: str
    dataset: str
    protocol: str
    ranks: tuple[int, ...]
    rows: tuple[PaperRow, ...]
    reported: dict[str, list[float | None]]  # printed only: figures of others, not measured

    @property
    def protocol_name(self) -> str:
        """Name of the protocol in `resight.protocols`."""
        return _PROTOCOLS[self.dataset, self.protocol]


@cache
def paper_tables() -> dict[str, PaperTable]:
    """Return the tables of the paper by name, table1 to table7."""
    text = files("resight.experiments").joinpath("paper_tables.json").read_text("utf-8")
    return {
        name: _table(name, content)
        for name, content in json.loads(text).items()
        if name.startswith("table")
    }


def select_tables(names: list[str]) -> list[PaperTable]:
    """Return the named tables; "all" or nothing means all."""
    known = paper_tables()
    if not names or names == ["all"]:
        return list(known.values())
    for name in names:
        if name not in known:
            raise unknown_name("table", name, [*known, "all"])
    return [known[name] for name in dict.fromkeys(names)]


def _table(name: str, content: dict[str, Any]) -> PaperTable:
    ranks = tuple(content["ranks"])
    rows = tuple(_row(row, ranks) for row in content["rows"])
    return PaperTable(
        name,
        content["title"],
        content["dataset"],
        content["protocol"],
        ranks,
        rows,
        content.get("reported", {}),
    )


def _row(row: dict[str, Any], ranks: tuple[int, ...]) -> PaperRow:
    learner = row["learner"]
    title = LEARNERS[learner].title if learner in LEARNERS else learner
    printed = {f"rank{rank}": value for rank, value in zip(ranks, row["values"], strict=True)}
    inferred = bool(row.get("descriptors_inferred", False))
    return PaperRow(learner, title, tuple(row["descriptors"]), printed, inferred)
