from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from resight.cli import main
from resight.datasets.synthetic import draw_person


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    folder = tmp_path / "frames"
    folder.mkdir()
    for t in range(3):
        image = np.full((320, 480, 3), 120, np.uint8)
        image[60:252, 60 + 90 * t : 156 + 90 * t] = draw_person(t, 1, size=(192, 96))
        cv2.imwrite(str(folder / f"{t}.png"), image[..., ::-1])
    return folder


def test_crop_with_the_detector_and_with_boxes(
    frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    words = ["crop", str(frames), "--out", out, "--camera", "door", "--fps", "2", "--json"]
    assert main([*words, "--start", "2024-05-31T14:00"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found["schema"] == "resight.crop/1"
    assert found["crops"] >= 2
    assert "check the crops" in told.err  # honest about its limits
    (tmp_path / "b.csv").write_text("frame,x,y,w,h\n1,60,60,96,192\n3,900,0,50,50\n")
    assert main([*words, "--boxes", str(tmp_path / "b.csv")]) == 0
    told = capsys.readouterr()
    assert {k: json.loads(told.out)[k] for k in ("crops", "left_out")} == {
        "crops": 1,
        "left_out": 1,
    }
    assert "check the crops" not in told.err


def test_nobody_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f").mkdir()
    cv2.imwrite(str(tmp_path / "f" / "a.png"), np.full((200, 200, 3), 9, np.uint8))
    assert main(["crop", str(tmp_path / "f"), "--out", str(tmp_path / "o"), "--camera", "c"]) == 0
    assert "found nobody in 1 frame;" in capsys.readouterr().out
    assert not (tmp_path / "o").exists()


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crop", str(tmp_path / "no.mp4"), "--out", "x", "--camera", "c"]) == 1
    assert "no video or folder" in capsys.readouterr().err
    assert main(["crop", str(tmp_path)]) == 2
