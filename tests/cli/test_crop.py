from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from resight import KXQDA
from resight.cli import main
from resight.datasets.synthetic import draw_cameras, draw_person
from resight.models.model import Model
from tiny_networks import badge_detector
from video_kit import write_video


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
    assert main([*words, "--boxes", str(tmp_path / "b.csv")]) == 1
    assert "replace them with --overwrite" in capsys.readouterr().err
    assert main([*words, "--boxes", str(tmp_path / "b.csv"), "--overwrite"]) == 0
    told = capsys.readouterr()
    assert {k: json.loads(told.out)[k] for k in ("crops", "left_out")} == {
        "crops": 1,
        "left_out": 1,
    }
    assert "check the crops" not in told.err


def test_a_network_finds_follows_and_fills_a_gallery(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = badge_detector(tmp_path / "badges.onnx", (192, 320), (120, 48))
    person = draw_person(1, 1, size=(120, 48))
    person[56:64, 20:28] = (255, 0, 0)
    pictures = []
    for t in range(24):
        picture = np.full((192, 320, 3), 90, np.uint8)
        picture[40:160, 5 + 6 * t : 53 + 6 * t] = person
        pictures.append(picture)
    video = write_video(tmp_path / "yard.mp4", pictures, 8.0, "mp4v")
    words = ["crop", str(video), "--camera", "yard", "--detector", str(network)]
    words += ["--out", str(tmp_path / "out"), "--start", "2024-05-31T14:00"]
    assert main([*words, "--per-track", "3"]) == 0
    told = capsys.readouterr()
    assert "wrote 3 crops of 1 track from 24 frames" in told.out
    assert "badges.onnx: YOLOX" in told.err  # what is done to the frames is said
    drawn = draw_cameras(tmp_path / "labelled", n_people=6)
    model = Model(("whos-star",), KXQDA())
    model.fit(model.describe(drawn.files()), drawn.persons, drawn.cameras).save(tmp_path / "model")
    place = str(tmp_path / "gallery")
    assert main(["gallery", "create", place, "--model", str(tmp_path / "model")]) == 0
    assert main(["gallery", "add", place, str(tmp_path / "out")]) == 0
    capsys.readouterr()
    query = next((tmp_path / "out/yard").glob("*.png"))
    assert main(["search", place, str(query), "--same-pictures"]) == 0
    told = capsys.readouterr().out
    assert told.count(" yard ") == 3
    assert told.count("2024-05-31 14:00:0") == 3
    assert main([*words, "--all", "--overwrite"]) == 0
    assert "wrote 24 crops of 1 track" in capsys.readouterr().out
    assert main([*words, "--class", "1", "--overwrite"]) == 1
    assert "a number from 0 to 0" in capsys.readouterr().err


def test_settings_from_a_file(frames: Path, tmp_path: Path) -> None:
    """Also where Python reserves a name, and by the name that the detector had before."""
    (tmp_path / "s.toml").write_text('all = true\nclass = "person"\nfind = "motion"\n')
    words = ["crop", str(frames), "--out", str(tmp_path / "o"), "--camera", "c"]
    assert main([*words, "--config", str(tmp_path / "s.toml")]) == 0


def test_nobody_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f").mkdir()
    cv2.imwrite(str(tmp_path / "f" / "a.png"), np.full((200, 200, 3), 9, np.uint8))
    assert main(["crop", str(tmp_path / "f"), "--out", str(tmp_path / "o"), "--camera", "c"]) == 0
    told = capsys.readouterr().out
    assert "found nobody in 1 frame;" in told
    assert "Try a smaller --min-height or --confidence" in told
    assert not (tmp_path / "o").exists()


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crop", str(tmp_path / "no.mp4"), "--out", "x", "--camera", "c"]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert main(["crop", str(tmp_path)]) == 2
