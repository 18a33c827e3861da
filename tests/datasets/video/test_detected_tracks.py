"""From a video to tracks of crops, with a network that finds the people."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from resight import KXQDA
from resight.cli import main
from resight.datasets import load
from resight.datasets.synthetic import draw_cameras
from resight.datasets.video import cut
from resight.datasets.video.detectors import Yolo
from resight.datasets.video.tracking import Tracker
from resight.gallery import Gallery
from resight.models.model import Model
from tiny_networks import badge_detector
from video_kit import crossing, identity_switches, write_video

RATE = 7.5


@pytest.fixture(scope="module")
def scene() -> list:
    return list(crossing(45))


@pytest.fixture(scope="module")
def yolox_nano(shared: Path) -> Path:
    network = shared / "models" / "yolox_nano.onnx"
    if not network.is_file():
        pytest.skip("no ../shared/models/yolox_nano.onnx")
    return network


def test_three_people_who_cross_are_followed(yolox_nano: Path, scene: list) -> None:
    find, tracker = Yolo(yolox_nano), Tracker()
    tracked = [tracker.follow(find(image), t / RATE) for t, (image, _) in enumerate(scene)]
    truths = [truth for _, truth in scene]
    assert 3 <= len({box.track for boxes in tracked for box in boxes}) <= 5
    assert identity_switches(truths, tracked) <= 2
    # Drawn people are found in most frames, so the above is not true for want of boxes.
    assert sum(map(len, tracked)) >= 0.8 * 3 * len(scene)


def test_a_gallery_holds_a_few_crops_of_each_of_them(
    yolox_nano: Path, scene: list, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    video = write_video(tmp_path / "street.mp4", [image for image, _ in scene], RATE, "mp4v")
    words = ["crop", str(video), "--camera", "street", "--detector", str(yolox_nano)]
    assert main([*words, "--out", str(tmp_path / "crops"), "--per-track", "4"]) == 0
    drawn = draw_cameras(tmp_path / "labelled", n_people=6)
    model = Model(("whos-star",), KXQDA())
    model.fit(model.describe(drawn.files()), drawn.persons, drawn.cameras)
    gallery = Gallery.create(tmp_path / "gallery", model)
    assert main(["gallery", "add", str(tmp_path / "gallery"), str(tmp_path / "crops")]) == 0
    counts = Counter(gallery.view.table.sequences.tolist())
    assert 3 <= len(counts) <= 5
    assert max(counts.values()) == 4
    assert capsys.readouterr().out.startswith(f"wrote {len(gallery)} crops of {len(counts)} tracks")
    gallery.close()


@pytest.fixture(scope="module")
def badges(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A video in which two people with red badges walk, and the network that finds badges."""
    folder = tmp_path_factory.mktemp("badges")
    rng = np.random.default_rng(0)
    body = rng.integers(40, 120, (120, 48, 1), np.uint8).repeat(3, axis=2)
    pictures = []
    for t in range(30):
        picture = np.full((192, 320, 3), 90, np.uint8)
        for x, y in ((5 + 6 * t, 20), (260 - 5 * t, 50)):
            picture[y : y + 120, x : x + 48] = body
            picture[y + 56 : y + 64, x + 20 : x + 28] = (255, 0, 0)
        pictures.append(picture)
    video = write_video(folder / "yard.mp4", pictures, RATE, "mp4v")
    return video, badge_detector(folder / "badges.onnx", (192, 320), (120, 48))


def test_a_few_crops_of_each_track_or_all(badges: tuple[Path, Path], tmp_path: Path) -> None:
    video, network = badges
    done = cut(video, tmp_path, "yard", find=network, per_track=3, start=1.7e9)
    sightings = load(tmp_path)
    assert done.crops == len(sightings) <= 3 * done.tracks
    assert 2 <= done.tracks <= 3
    assert max(Counter(sightings.sequences.tolist()).values()) == 3
    assert all(name.startswith("yard-") for name in sightings.sequences.tolist())
    times = sightings.times - 1.7e9
    assert 0 <= times.min() < times.max() <= 30 / RATE
    files = set(tmp_path.rglob("*.png"))
    every = cut(video, tmp_path, "yard", find=network, per_track=None, overwrite=True)
    assert every.crops > 45
    assert len(load(tmp_path)) == every.crops == len(set(tmp_path.rglob("*.png")))
    few = cut(video, tmp_path, "yard", find=network, per_track=3, overwrite=True)
    assert few.crops == done.crops
    assert set(tmp_path.rglob("*.png")) == files  # the others of the run before are gone


def test_tracks_of_a_camera_that_finds_nobody_any_more(
    badges: tuple[Path, Path], tmp_path: Path
) -> None:
    video, network = badges
    assert cut(video, tmp_path, "yard", find=network).crops > 0
    nobody = cut(video, tmp_path, "yard", find=network, min_height=500, overwrite=True)
    assert (nobody.crops, nobody.tracks, nobody.frames) == (0, 0, 30)
    assert not list(tmp_path.rglob("*.*"))


def test_what_a_table_knows_of_other_crops_is_kept(
    badges: tuple[Path, Path], tmp_path: Path
) -> None:
    video, network = badges
    line = "door/a.png,ann,door,gallery,hall"
    (tmp_path / "sightings.csv").write_text(f"path,person,camera,role,site\n{line}\n")
    done = cut(video, tmp_path, "yard", find=network)
    table = (tmp_path / "sightings.csv").read_text().splitlines()
    assert len(table) == 2 + done.crops
    assert table[1] == "door/a.png,ann,door,,,gallery,hall"


def test_crops_of_an_interrupted_run_are_in_the_table(
    badges: tuple[Path, Path], tmp_path: Path
) -> None:
    video, network = badges
    seen = []

    def interrupt(n: int) -> None:
        seen.append(n)
        if len(seen) == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut(video, tmp_path, "yard", find=network, per_track=None, on_frame=interrupt)
    files = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.png")}
    assert len(files) >= 15
    assert set(load(tmp_path).paths.tolist()) == files
    whole = cut(video, tmp_path, "yard", find=network, overwrite=True)
    assert len(load(tmp_path)) == whole.crops == len(list(tmp_path.rglob("*.png")))
