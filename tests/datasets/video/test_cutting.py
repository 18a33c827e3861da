from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from resight.datasets import load
from resight.datasets.synthetic import draw_person
from resight.datasets.video import cut
from resight.datasets.video.detectors import detector
from resight.datasets.video.frames import Box, frames, read_boxes
from resight.errors import InputError
from resight.images import read

RATE = 10.0


def scene(t: int, n_frames: int) -> tuple[np.ndarray, Box]:
    """A person walks from left to right before a fixed background; returns where exactly."""
    rng = np.random.default_rng(0)
    background = cv2.resize(rng.integers(60, 200, (12, 16, 3), dtype=np.uint8), (480, 320))
    person = draw_person(3, 1, size=(192, 96))[:, 24:72]
    x = 30 + (380 * t) // n_frames
    image = background.copy()
    image[90:282, x : x + 48] = person
    return image, Box(x, 90, 48, 192)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("video") / "hall 1.avi"
    writer = cv2.VideoWriter(str(file), cv2.VideoWriter_fourcc(*"MJPG"), RATE, (480, 320))
    for t in range(40):
        writer.write(scene(t, 40)[0][..., ::-1])
    writer.release()
    return file


def overlap(a: Box, b: Box) -> float:
    w = min(a.x + a.w, b.x + b.w) - max(a.x, b.x)
    h = min(a.y + a.h, b.y + b.h) - max(a.y, b.y)
    inside = max(w, 0) * max(h, 0)
    return inside / (a.w * a.h + b.w * b.h - inside)


def test_frames_of_a_video_have_times(video: Path) -> None:
    taken = list(frames(video, every=4))
    assert [frame.number for frame in taken] == list(range(1, 40, 4))
    assert taken[3].time == pytest.approx(12 / RATE)
    assert np.abs(taken[0].image.astype(int) - scene(0, 40)[0]).mean() < 8  # RGB, not BGR


@pytest.mark.parametrize(("name", "at_least"), [("people", 0.25), ("motion", 0.5)])
def test_detectors_find_a_walking_person(name: str, at_least: float) -> None:
    find = detector(name, 64)
    hits = 0
    for t in range(40):
        image, truth = scene(t, 40)
        hits += any(overlap(box, truth) > at_least for box in find(image))
    assert hits >= 24


def test_motion_finds_nothing_where_nothing_moves() -> None:
    find = detector("motion", 64)
    assert not any(find(scene(0, 40)[0]) for _ in range(30))


def test_crops_become_sightings(video: Path, tmp_path: Path) -> None:
    done = cut(video, tmp_path, "hall", find="motion", start=1.7e9, per_track=None)
    assert done.crops >= 20
    sightings = load(tmp_path)
    assert len(sightings) == done.crops
    assert set(sightings.cameras.tolist()) == {"hall"}
    assert set(sightings.persons.tolist()) == {""}
    numbers = [int(str(path).split("-")[1]) for path in sightings.paths]
    assert np.allclose(sightings.times, 1.7e9 + (np.array(numbers) - 1) / RATE)


def test_boxes_are_cut_exactly_and_cameras_share_a_folder(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    for t in range(3):
        cv2.imwrite(str(tmp_path / "frames" / f"{t:03d}.png"), scene(t, 3)[0][..., ::-1])
    rows = [f"{t + 1},7,{box.x},{box.y},{box.w},{box.h},1,-1,-1,-1" for t, box in
            ((t, scene(t, 3)[1]) for t in range(3))]  # fmt: skip
    rows += ["1,8,470,10,200,200,1", "2,9,5,5,60,100,0"]  # at the edge; confidence 0
    (tmp_path / "mot.txt").write_text("\n".join(rows))
    given = {"boxes": tmp_path / "mot.txt", "fps": 2.0}
    for camera in ("north", "south"):
        done = cut(tmp_path / "frames", tmp_path / "out", camera, **given)
        assert (done.crops, done.tracks, done.left_out) == (3, 1, 1)
    with pytest.raises(InputError, match="has 3 crops of frames already"):
        cut(tmp_path / "frames", tmp_path / "out", "north", **given)
    cut(tmp_path / "frames", tmp_path / "out", "north", **given, overwrite=True)
    sightings = load(tmp_path / "out")
    assert sightings.cameras.tolist().count("north") == 3  # cut again, entered once
    assert len(sightings) == 6
    assert set(sightings.sequences.tolist()) == {"frames-7"}
    assert sorted(set(sightings.times.tolist())) == [0.0, 0.5, 1.0]
    image, box = scene(1, 3)
    crop = read((tmp_path / "out/south/frames-000002-00.png").read_bytes())
    assert np.array_equal(crop, image[box.y : box.y + box.h, box.x : box.x + box.w])


def test_boxes_from_a_table(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("frame,x,y,w,h,id\n2,1.4,2,30,60,ann\n2,5,5,20,50,\n")
    assert read_boxes(tmp_path / "b.csv") == {2: [Box(1, 2, 30, 60, "ann"), Box(5, 5, 20, 50)]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("frame,x,y,w\n1,2,3,4", "has no column 'h'"),
        ("1,1,2,3,4", "line 1"),
        ("1,1,2,3,4,nan", "boxes contain NaN"),
        ("0,1,2,3,4,5", "frame=0.0: it must be"),
        ("a,b,c,d,e,f", "line 1"),
    ],
)
def test_bad_boxes(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "b.txt").write_text(text)
    with pytest.raises(InputError, match=words):
        read_boxes(tmp_path / "b.txt")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"camera": "../up"}, "a name without"),
        ({"camera": ".hidden"}, "a name without"),
        ({"confidence": 2.0}, "from 0 to 1"),
        ({"per_track": 0}, "at least 1"),
        ({"every": 0}, "at least 1"),
        ({"fps": -1.0}, "from 0 to"),
        ({"fps": 0.0}, "above 0"),
        ({"fps": float("inf")}, "finite"),
        ({"start": 1e300}, "1900 and 9999"),
        ({"camera": "a\u202eb"}, "direction mark"),
        ({"find": "peple"}, "did you mean 'people'"),
        ({"source": Path("missing.mp4")}, "missing.mp4: it does not exist"),
    ],
)
def test_bad_options(video: Path, tmp_path: Path, options: dict, words: str) -> None:
    given = {"source": video, "out": tmp_path / "out", "camera": "hall", **options}
    with pytest.raises(InputError, match=words):
        cut(given.pop("source"), given.pop("out"), given.pop("camera"), **given)
    assert not (tmp_path / "out").exists()


def test_files_that_are_no_video(tmp_path: Path) -> None:
    (tmp_path / "x.mp4").write_text("no video")
    with pytest.raises(InputError, match="cannot read"):
        list(frames(tmp_path / "x.mp4"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no images"):
        list(frames(tmp_path / "empty"))
