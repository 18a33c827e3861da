from __future__ import annotations

import json

import pytest

import resight
from resight.cli import main


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    assert main(["demo", "--out", str(out), "--jobs", "2"]) == 0
    return out


def test_kxqda_leads_and_learning_pays(demo):
    result = json.loads((demo / "result" / "result.json").read_text())
    rank1 = {run["learner"]: run["summary"]["rank1"]["mean"] for run in result["runs"]}
    assert rank1["kxqda"] == max(rank1.values())
    assert rank1["kxqda"] > rank1["euclidean"] + 20


def test_it_leaves_a_report_and_a_model(demo):
    text = (demo / "report.html").read_text()
    assert "rank-1 accuracy" in text
    assert text.count("data:image/jpeg") > 50
    assert resight.load(demo / "model").descriptors == ("lomo-dagger",)


def test_it_fills_a_gallery_for_the_page(demo):
    gallery = resight.Gallery.open(demo / "gallery")
    assert len(gallery) == 400
    gallery.close()
