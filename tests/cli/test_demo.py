from __future__ import annotations

import json

import pytest

import resight
from resight.cli import main
from resight.plans import DESCRIPTOR


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    assert main(["demo", "--out", str(out), "--jobs", "2"]) == 0
    return out


def test_the_recipe_stands_beside_the_paper_and_two_baselines(demo):
    result = json.loads((demo / "result" / "result.json").read_text())
    rank1 = {run["learner"]: run["summary"]["rank1"]["mean"] for run in result["runs"]}
    assert list(rank1) == ["auto", "kxqda", "xqda", "euclidean"]
    assert {"+".join(run["descriptors"]) for run in result["runs"]} == {DESCRIPTOR}
    assert rank1["auto"] > rank1["euclidean"] + 10  # learning pays; who is first is not arranged


def test_it_leaves_a_report_and_a_model(demo):
    text = (demo / "report.html").read_text()
    assert "rank-1 accuracy" in text
    assert text.count("data:image/jpeg") > 50
    assert resight.load(demo / "model").descriptors == tuple(DESCRIPTOR.split("+"))


def test_it_fills_a_gallery_for_the_page(demo):
    gallery = resight.Gallery.open(demo / "gallery")
    assert len(gallery) == 160
    gallery.close()
