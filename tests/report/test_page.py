from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError, StoreError
from resight.experiments.in_gram_space import measure
from resight.experiments.results import Result, Run, document, ranking_rows
from resight.plans import Plan
from resight.protocols import half_half
from resight.report import write
from resight.report.displays import CMCDisplay
from resight.report.page import worst_first
from resight.report.result_files import read_rankings, read_result
from resight.tuning.gram import GramSpace


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A real evaluation of drawn people, on mean colours of a coarse grid."""
    from resight.images import read

    folder = tmp_path_factory.mktemp("report")
    sightings = draw_cameras(folder / "images", 20, n_cameras=3, seed=3)
    X = np.array([read(file)[::8, ::8].ravel() for file in sightings.files()], dtype=np.float64)
    protocol = half_half(sightings, n_splits=3)
    plans = [Plan("kxqda"), Plan("euclidean"), Plan("euclidean", rerank="cross-view")]
    trials = measure(sightings, protocol, GramSpace([X]), plans)
    runs = [Run(plan, ("grid",), of_plan) for plan, of_plan in zip(plans, trials, strict=True)]
    result = document(sightings, protocol, runs, {"fingerprint": {}})
    Result(result, ranking_rows(runs)).save(folder / "result")
    return folder, result, sightings


def test_the_report_stands_alone(evaluated, tmp_path):
    folder, result, sightings = evaluated
    page = tmp_path / "report.html"
    write(page, result, sightings, folder / "result" / "rankings.csv", "resight evaluate x")
    text = page.read_text()
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    assert "<script" not in text
    assert text.count("data:image/jpeg;base64,") > 20
    assert "post-processing that uses the gallery" in text
    assert "resight evaluate x" in text
    best = max(one["summary"]["rank1"]["mean"] for one in result["runs"])
    assert f"<b>{best:.1f}%</b>" in text
    assert page.stat().st_size < 3_000_000


def test_worst_queries_come_first_and_right_answers_are_marked(evaluated):
    folder, _, sightings = evaluated
    rows = read_rankings(folder / "result" / "rankings.csv")
    lists = worst_first(rows, sightings)
    ranks = [one["first_rank"] for one in lists]
    assert ranks == sorted(ranks, reverse=True)
    for one in lists:
        marks, rank = [answer["right"] for answer in one["answers"]], one["first_rank"]
        assert marks.index(True) + 1 == rank if True in marks else rank > 8


def test_curves_are_means_over_splits(evaluated):
    folder, result, _ = evaluated
    display = CMCDisplay.from_result(folder / "result")
    first = [trial["curve"][0] for trial in result["runs"][0]["trials"]]
    assert display.curves[0].mean[0] == pytest.approx(np.mean(first))
    assert display.curves[0].sd[0] == pytest.approx(np.std(first, ddof=1))


def test_the_camera_matrix_is_a_table_of_the_first_run(evaluated, tmp_path):
    _, result, sightings = evaluated
    told = result["runs"][0]["camera_pairs"]
    rows = camera_rows(result, tmp_path)
    assert [name for name, _ in rows] == np.unique(sightings.cameras).tolist()
    for i, (_, cells) in enumerate(rows):
        for j, cell in enumerate(cells):
            asked, right = told["asked"][i][j], told["right"][i][j]
            assert (asked == 0) == (i == j)
            shade = round(0.55 * right / asked, 3) if asked else 0.0
            words = f"{100 * right / asked:.0f}%<br><small>of {asked}</small>" if asked else "-"
            assert cell == f'<td style="background: rgba(27, 108, 168, {shade})">{words}</td>'


def camera_rows(result, folder):
    """Read the table of camera pairs from the page: camera and cells of each row."""
    write(folder / "report.html", result)
    text = (folder / "report.html").read_text()
    rows = re.findall(r'<th scope="row">([^<]*)</th>\n(<td style="background.*)</tr>', text)
    return [(name, re.findall("<td.*?</td>", cells)) for name, cells in rows]


def test_two_cameras_need_no_matrix(evaluated, tmp_path):
    _, result, _ = evaluated
    runs = [{**run, "camera_pairs": None} for run in result["runs"]]
    assert camera_rows({**result, "runs": runs}, tmp_path) == []
    assert "Results by camera pair" not in (tmp_path / "report.html").read_text()


def test_six_cameras_in_the_layout_of_market_1501(tmp_path):
    from resight import datasets
    from resight.images import read
    from resight.protocols import for_dataset

    drawn = draw_cameras(tmp_path / "drawn", 12, n_cameras=6, seed=3)
    folders = ("bounding_box_train", "query", "bounding_box_test")
    for folder in folders:
        (tmp_path / "market" / folder).mkdir(parents=True)
    for file, person, camera in zip(drawn.files(), drawn.persons, drawn.cameras, strict=True):
        number = int(camera[-1])
        tested = int(person) > 6
        own = folders[0] if not tested else folders[1] if number <= 2 else folders[2]
        name = f"{person}_c{number}s1_000001_00.jpg"
        (tmp_path / "market" / own / name).write_bytes(_jpeg(read(file)))
    sightings = datasets.load("market1501", root=tmp_path / "market")
    X = np.array([read(file)[::8, ::8].ravel() for file in sightings.files()], dtype=np.float64)
    protocol = for_dataset(sightings)
    trials = measure(sightings, protocol, GramSpace([X]), [Plan("kxqda")])
    result = document(sightings, protocol, [Run(Plan("kxqda"), ("grid",), trials[0])], {})
    asked = np.array(result["runs"][0]["camera_pairs"]["asked"])
    shown = [
        ["<small>of 6</small>" in cell for cell in cells]
        for _, cells in camera_rows(result, tmp_path)
    ]
    np.testing.assert_array_equal(shown, asked == 6)
    expected = np.zeros((6, 6), int)
    expected[:2, 2:] = 6  # two cameras ask, each person is in the gallery of the four others
    np.testing.assert_array_equal(asked, expected)


def _jpeg(image):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=95)
    return stream.getvalue()


def test_missing_images_and_markup_do_no_harm(evaluated, tmp_path):
    from dataclasses import replace

    folder, result, sightings = evaluated
    gone = replace(sightings, root=tmp_path)
    hostile = json.loads(json.dumps(result))
    hostile["dataset"]["name"] = "<script>alert(1)</script>"
    page = tmp_path / "report.html"
    write(page, hostile, gone, folder / "result" / "rankings.csv")
    text = page.read_text()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert 'class="none"' in text


def test_the_verb_reads_results_and_refuses_others(evaluated, tmp_path, capsys):
    folder, _, _ = evaluated
    out = tmp_path / "page.html"
    words = ["report", str(folder / "result"), "--data", str(folder / "images")]
    assert main([*words, "--out", str(out)]) == 0
    assert out.is_file()
    assert main(["report", str(tmp_path)]) == 1
    assert "no result.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "says"), [("{", "damaged"), ("[]", "damaged"), ('{"schema": "other/1"}', "other/1")]
)
def test_foreign_results_are_refused(tmp_path, content, says):
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(StoreError, match=says):
        read_result(tmp_path)


def test_a_damaged_list_is_refused(tmp_path):
    (tmp_path / "rankings.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="has no column"):
        read_rankings(tmp_path / "rankings.csv")
