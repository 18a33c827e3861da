"""The paper's tables: which rows they have, and how each is measured here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from resight.errors import unknown_name
from resight.plans import Plan
from resight.registry import AUTO, LEARNERS
from resight.tuning.candidates import AUTO_POOL, AUTO_VARIANTS, CV, CV_FOLDS


@dataclass(frozen=True)
class PaperRow:
    """One printed row: a learner on some descriptors, with the printed figures in percent."""

    learner: str
    title: str
    descriptors: tuple[str, ...]
    printed: dict[str, float | None]  # None: not given
    inferred: bool  # the paper does not say which descriptor
    quoted: bool = False  # from the papers of others: one version, as like theirs as possible
    rerank: str | None = None

    def plans(self) -> list[Plan]:
        """All versions in which this row is measured.

        Versions of k-XQDA are fixed: `paper` is the authors' kernel and regulariser,
        `paper-poly` the polynomial the paper names beside it, `cv` is chosen in each split among
        kernels and regularisers, `auto` among everything that docs/auto.md lists.
        """
        if self.quoted:
            return [Plan(self.learner, rerank=self.rerank)]
        if self.learner == "kxqda":
            poly = {"kernel": "poly", "degree": 2, "coef0": 1.0}
            return [
                Plan("kxqda", "paper"),
                Plan("kxqda", "paper-poly", poly),
                Plan("kxqda", "cv", {}, CV, CV_FOLDS),
                Plan(AUTO, "auto", {"mirrored": True}),
            ]
        if self.learner == "xqda":
            return [Plan("xqda-raw", "raw"), Plan("xqda", "normalized")]
        if self.learner == "mlapg":
            return [Plan("mlapg", params={"precision": "float32"})]  # half the time, equal ranks
        return [Plan(self.learner)]


@dataclass(frozen=True)
class Job:
    """One measurement that some rows of some tables need."""

    dataset: str
    protocol: str
    descriptors: tuple[str, ...]
    plan: Plan
    people: int | None = None  # labelled people that are learned from; None: all of a split


@dataclass(frozen=True)
class PaperTable:
    """One printed table."""

    name: str
    title: str
    dataset: str
    protocol: str
    rows: tuple[PaperRow, ...]
    reported: dict[str, list[float | None]]  # printed only: figures of others, not measured

    @property
    def protocol_name(self) -> str:
        """Name of the protocol in `resight.protocols`."""
        return f"cuhk01-{self.protocol}" if self.dataset == "cuhk01" else self.dataset

    def jobs(self, row: PaperRow) -> list[Job]:
        """Everything that is measured for a row."""
        # Tables 1 and 2 compare descriptors and learners: `auto` keeps the descriptor of the row.
        pools = [AUTO_POOL, AUTO_POOL + AUTO_VARIANTS]
        if self.name in ("table1", "table2"):
            pools = [row.descriptors]
        return [
            Job(self.dataset, self.protocol_name, descriptors, plan)
            for plan in row.plans()
            for descriptors in (pools if plan.learner == AUTO else [row.descriptors])
        ]


@cache
def paper_tables() -> dict[str, PaperTable]:
    """Return the tables of the paper by name, table1 to table7."""
    printed, others = _shipped("paper_tables.json"), _shipped("others.json")["measured"]
    names = (name for name in printed if name.startswith("table"))
    return {name: _table(name, printed[name], others) for name in names}


def reasons() -> dict[str, list[str]]:
    """Return why rows that the paper quotes from others are not measured: names by reason."""
    return _shipped("others.json")["reasons"]


def select_tables(names: list[str]) -> list[PaperTable]:
    """Return the named tables; "all" or nothing means all."""
    known = paper_tables()
    if not names or names == ["all"]:
        return list(known.values())
    for name in names:
        if name not in known:
            raise unknown_name("table", name, [*known, "all"])
    return [known[name] for name in dict.fromkeys(names)]


def _shipped(name: str) -> dict[str, Any]:
    return json.loads(files("resight.reproduce").joinpath(name).read_text("utf-8"))


def _table(name: str, content: dict[str, Any], others: dict[str, dict[str, Any]]) -> PaperTable:
    facts = {key: content[key] for key in ("title", "dataset", "protocol")}
    ranks, reported = tuple(content["ranks"]), content.get("reported", {})
    quoted = [
        {"values": values, "descriptors_inferred": True, "quoted": True, **others[name]}
        for name, values in reported.items()
        if name in others
    ]
    rows = tuple(_row(row, ranks) for row in [*content["rows"], *quoted])
    return PaperTable(name, **facts, rows=rows, reported=reported)


def _row(row: dict[str, Any], ranks: tuple[int, ...]) -> PaperRow:
    learner, rerank = row["learner"], row.get("rerank")
    title = LEARNERS[learner].title + ("" if rerank is None else f" and {rerank}")
    printed = {f"rank{rank}": value for rank, value in zip(ranks, row["values"], strict=True)}
    inferred, quoted = (row.get(key, False) for key in ("descriptors_inferred", "quoted"))
    return PaperRow(learner, title, tuple(row["descriptors"]), printed, inferred, quoted, rerank)
