"""Committed split files: complete, unchanged, and equal to what was published."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from resight.errors import StoreError
from resight.protocols import published
from resight.protocols.published import committed_splits, parse

ROOT = Path(__file__).resolve().parents[2]
SIZES = {
    "cuhk01-single-shot": (486, 485),
    "cuhk01-multi-shot": (485, 486),
    "grid": (125, 125),
    "prid450s": (225, 225),
}


@pytest.mark.parametrize("name", SIZES)
def test_ten_splits_of_the_right_size(name):
    splits = committed_splits(name)
    assert len(splits) == 10
    for split in splits:
        assert (len(split.train), len(split.test)) == SIZES[name]
        assert not set(split.train) & set(split.test)
    assert len({split.test for split in splits}) == 10


def test_single_shot_pictures_come_from_the_right_cameras():
    for split in committed_splits("cuhk01-single-shot"):
        assert len(split.query_pictures) == len(split.gallery_pictures) == 485
        assert set(split.query_pictures) == {1, 2}
        assert set(split.gallery_pictures) == {3, 4}


def test_single_shot_equals_the_published_rows(shared):
    published = json.loads((shared / "data/splits/cuhk01_m1.json").read_text())
    for rows, split in zip(published, committed_splits("cuhk01-single-shot"), strict=True):
        first: dict[tuple[int, int], str] = {}
        for file, person, camera in rows["test"]:
            first.setdefault((person, camera), file)
        query, gallery = (
            [f"{int(p):04d}00{k}.png" for p, k in zip(split.test, pictures, strict=True)]
            for pictures in (split.query_pictures, split.gallery_pictures)
        )
        assert set(query) == {file for (_, camera), file in first.items() if camera == 1}
        assert set(gallery) == {row[0] for row in rows["test"] if row[2] == 2}
        assert {int(p) for p in split.train} == {row[1] for row in rows["train"]}


def test_the_script_writes_exactly_the_committed_files(shared, tmp_path):
    copy = tmp_path / "scripts" / "make_splits.py"
    copy.parent.mkdir()
    shutil.copy(ROOT / "scripts" / "make_splits.py", copy)
    subprocess.run([sys.executable, copy, shared / "data" / "splits"], check=True)
    folder = files("resight.datasets") / "splits"
    written = tmp_path / "src" / "resight" / "datasets" / "splits"
    for name in ("SHA256SUMS", *(f"{name}.json" for name in SIZES)):
        assert (written / name).read_bytes() == (folder / name).read_bytes()


def test_a_changed_file_is_noticed(monkeypatch, tmp_path):
    folder = Path(str(files("resight.datasets"))) / "splits"
    shutil.copytree(folder, tmp_path / "splits")
    changed = tmp_path / "splits" / "grid.json"
    changed.write_text(changed.read_text().replace('"people": 250', '"people": 251'))
    monkeypatch.setattr(published, "files", lambda _: tmp_path)
    with pytest.raises(StoreError, match=r"grid\.json of this installation was modified"):
        committed_splits.__wrapped__("grid")


def test_everybody_who_is_not_tested_trains():
    (split,) = parse(b'{"people": 4, "splits": [{"test": [2, 3], "query": "12", "gallery": "34"}]}')
    assert split.train == ("1", "4")
    assert split.query_pictures == (1, 2)
