"""Videos as cameras and phones write them: turned, cut off, at a varying rate."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from resight.datasets.video.frames import frames
from resight.errors import InputError
from video_kit import write_video


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Two seconds with a white left half, as MP4."""
    picture = np.zeros((48, 64, 3), np.uint8)
    picture[:, :32] = 255
    return write_video(tmp_path / "clip.mp4", [picture] * 20, 10.0, "mp4v")


def change_rate(file: Path, entries: list[tuple[int, float]]) -> None:
    """Rewrite how long frames last: (number of frames, times the length they have)."""
    data = bytearray(file.read_bytes())
    start = data.index(b"stts") - 4
    (size,) = struct.unpack(">I", data[start : start + 4])
    (length,) = struct.unpack(">I", data[start + 20 : start + 24])
    table = b"".join(struct.pack(">II", n, round(length * times)) for n, times in entries)
    atom = struct.pack(">I4sII", 16 + len(table), b"stts", 0, len(entries)) + table
    for name in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):  # all that it is inside of
        place = data.index(name) - 4
        (old,) = struct.unpack(">I", data[place : place + 4])
        data[place : place + 4] = struct.pack(">I", old + len(atom) - size)
    data[start : start + size] = atom
    file.write_bytes(data)


def test_times_of_a_varying_frame_rate(clip: Path) -> None:
    change_rate(clip, [(10, 1.0), (10, 0.5)])
    times = [frame.time for frame in frames(clip)]
    assert np.allclose(times, [*np.arange(10) / 10, *(1 + np.arange(10) / 20)], atol=1e-3)
    given = [frame.time for frame in frames(clip, fps=4)]  # whoever gives a rate is believed
    assert np.allclose(given, np.arange(20) / 4)


def test_rotated_by_metadata(clip: Path) -> None:
    data = bytearray(clip.read_bytes())
    matrix = data.index(b"tkhd") + 44
    turned = (0, 65536, 0, -65536, 0, 0, 48 << 16, 0, 1 << 30)  # a quarter turn clockwise
    data[matrix : matrix + 36] = struct.pack(">9i", *turned)
    clip.write_bytes(data)
    picture = next(frames(clip)).image
    assert picture.shape == (64, 48, 3)
    assert picture[:24].mean() > 200  # what was left is above now
    assert picture[40:].mean() < 50


def test_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
    file = write_video(tmp_path / "clip.avi", [noise] * 20, 10.0, "MJPG")
    with caplog.at_level("WARNING"):
        assert len(list(frames(file))) == 20
        assert not caplog.records
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        found = len(list(frames(file)))
    assert 5 <= found <= 11
    assert f"ends after {found} of 20 frames: is it truncated?" in caplog.text


def test_cut_off_so_that_nothing_is_left(clip: Path, tmp_path: Path) -> None:
    clip.write_bytes(clip.read_bytes()[:500])
    with pytest.raises(InputError, match=r"cannot read .*clip.mp4 as a video: it is truncated"):
        list(frames(clip))
    empty = write_video(tmp_path / "e.avi", [np.zeros((48, 64, 3), np.uint8)], 10.0, "MJPG")
    content = empty.read_bytes()
    empty.write_bytes(content[: content.index(b"movi") + 4])
    with pytest.raises(InputError, match="cannot read"):
        list(frames(empty))
