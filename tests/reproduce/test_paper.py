from __future__ import annotations

import json
from importlib.resources import files

import pytest

from resight.errors import InputError
from resight.registry import LEARNERS
from resight.reproduce.page import page_of
from resight.reproduce.paper import paper_tables, reasons, select_tables
from resight.tuning.candidates import AUTO_POOL, AUTO_VARIANTS


def test_the_shipped_figures_are_those_of_the_paper(shared):
    shipped = json.loads(
        files("resight.reproduce").joinpath("paper_tables.json").read_text("utf-8")
    )
    assert shipped == json.loads((shared / "paper" / "tables.json").read_text())


def test_every_row_can_be_measured():
    tables = paper_tables()
    assert list(tables) == [f"table{i}" for i in range(1, 8)]
    for table in tables.values():
        for row in table.rows:
            assert row.learner in LEARNERS
            assert row.plans()


def test_every_quoted_row_is_measured_or_has_a_reason():
    unmeasured = [name for names in reasons().values() for name in names]
    for table in paper_tables().values():
        measured = {tuple(row.printed.values()) for row in table.rows if row.quoted}
        for name, values in table.reported.items():
            assert (tuple(values) in measured) != (name in unmeasured)
    rows = [row for row in paper_tables()["table7"].rows if row.quoted]
    assert [(row.title, row.plans()[0].rerank) for row in rows] == [
        ("XQDA and ssm", "ssm"),
        ("XQDA and ol-mans", "ol-mans"),
    ]


def test_kxqda_rows_have_fixed_versions_and_a_chosen_one():
    row = next(row for row in paper_tables()["table7"].rows if row.learner == "kxqda")
    assert [plan.version for plan in row.plans()] == ["paper", "paper-poly", "cv", "auto"]


def test_auto_keeps_the_descriptor_where_a_table_compares_descriptors():
    for name, table in paper_tables().items():
        for row in table.rows:
            chosen = [job.descriptors for job in table.jobs(row) if job.plan.version == "auto"]
            others = {job.descriptors for job in table.jobs(row) if job.plan.version != "auto"}
            pools = [AUTO_POOL, AUTO_POOL + AUTO_VARIANTS]
            if chosen:
                assert chosen == (pools if name > "table2" else [row.descriptors])
            assert others == {row.descriptors}


def test_unknown_tables_are_refused_with_the_valid_ones():
    with pytest.raises(InputError, match="table7"):
        select_tables(["table8"])
    assert len(select_tables(["all"])) == 7
    assert [table.name for table in select_tables(["table3", "table3"])] == ["table3"]


def test_the_page_prints_measured_beside_printed():
    row = {
        "learner": "kxqda",
        "title": "k-XQDA",
        "descriptors": ["gog"],
        "descriptors_inferred": False,
        "paper": {"rank1": 35.3, "rank10": 72.1},
        "version": "cv",
        "rank1": 36.0,
        "rank10": 70.0,
        "sd": {"rank1": 2.5},
        "seconds": 3.2,
        "chosen": {"kernel=rbf": 10},
    }
    missing = {**row, "title": "DNS", "version": "missing"}
    table = {"name": "table3", "title": "PRID2011", "dataset": "prid2011"}
    partly = {**row, "title": "CAMEL", "paper": {"rank1": 57.3, "rank10": None}}
    varied = {**row, "descriptors": [*AUTO_POOL, *AUTO_VARIANTS]}
    table |= {"protocol": "single-shot", "rows": [row, missing, partly, varied]}
    table["reported"] = {"WARCA": [58.34, None, None], "CAMEL": [57.3, None, None]}
    page = page_of({"tables": [table]})
    assert "36.0 ± 2.5 (35.3)" in page
    assert "+0.7" in page
    assert "70.0 (not given)" in page
    assert "WARCA 58.34" in page
    assert "- (35.3)" in page
    assert "10 x kernel=rbf" in page
    assert "whos-dagger and 6 variants" in page
