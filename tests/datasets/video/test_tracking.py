from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.datasets.video.frames import Box
from resight.datasets.video.tracking import Tracker, overlap
from video_kit import identity_switches

RATE = 10.0


def walkers(n_frames: int) -> list[list[Box]]:
    """Three people: two meet in the middle, the third overtakes the first."""
    paths = [(0, 8.0, 100), (400, -8.0, 110), (-150, 13.0, 120)]
    return [
        [Box(round(x + v * t), y, 50, 120, str(n)) for n, (x, v, y) in enumerate(paths)]
        for t in range(n_frames)
    ]


def follow(frames: list[list[Box]], tracker: Tracker | None = None) -> list[list[Box]]:
    tracker = tracker or Tracker()
    return [tracker.follow(boxes, t / RATE) for t, boxes in enumerate(frames)]


def names(tracked: list[list[Box]]) -> set[str]:
    return {box.track for boxes in tracked for box in boxes}


def test_overlap_by_hand() -> None:
    a = np.array([[0, 0, 10, 10.0]])
    b = np.array([[5, 0, 10, 10], [0, 0, 10, 10], [20, 0, 5, 5], [10, 10, 0, 0.0]])
    assert overlap(a, b).tolist() == [[pytest.approx(1 / 3), 1.0, 0.0, 0.0]]


def test_people_who_cross_keep_their_tracks() -> None:
    truth = walkers(50)
    tracked = follow([[box._replace(track="") for box in boxes] for boxes in truth])
    assert len(names(tracked)) == 3
    assert identity_switches(truth, tracked) == 0


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_noise_misses_and_false_detections(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = walkers(50)
    frames = []
    for boxes in truth:
        seen = [
            Box(*np.round(rng.normal(box[:4], 2)).astype(int).tolist(), score=rng.uniform(0.3, 1))
            for box in boxes
            if rng.random() > 0.05
        ]
        if rng.random() < 0.1:  # somewhere, once, and not sure
            seen.append(Box(*rng.integers(0, 400, 2).tolist(), 50, 120, score=0.3))
        frames.append(seen)
    tracked = follow(frames)
    assert len(names(tracked)) <= 5
    assert identity_switches(truth, tracked) <= 2


def test_doubtful_boxes_continue_a_track_but_begin_none() -> None:
    walk = walkers(20)
    doubtful = [[boxes[0]._replace(track="", score=0.2)] for boxes in walk]
    assert names(follow(doubtful)) == set()
    doubtful[0] = [walk[0][0]]
    tracked = follow(doubtful)
    assert names(tracked) == {"1"}
    assert all(len(boxes) == 1 for boxes in tracked)


def test_hidden_people_are_expected_where_they_walk_on() -> None:
    walk = [[boxes[0]] for boxes in walkers(30)]
    for t in range(12, 20):  # 0.8 s behind a column; 64 pixels farther, more than the box is wide
        walk[t] = []
    assert names(follow(walk)) == {"1"}


def test_people_who_stay_away_begin_a_new_track() -> None:
    tracker = Tracker()
    assert names(follow([[Box(0, 0, 50, 120)]] * 3, tracker)) == {"1"}
    assert tracker.live == {"1"}
    assert tracker.follow([], 5.0) == []
    assert tracker.live == set()
    assert tracker.follow([Box(0, 0, 50, 120)], 5.1)[0].track == "2"


def test_velocity_is_in_seconds_so_the_frame_rate_may_vary() -> None:
    rng = np.random.default_rng(0)
    tracker, time, tracks = Tracker(), 0.0, set()
    for _ in range(60):
        time += rng.choice([0.03, 0.1, 0.4])  # 100 pixels a second: up to 40 of the 50 it is wide
        tracks |= {box.track for box in tracker.follow([Box(round(100 * time), 0, 50, 120)], time)}
    assert tracks == {"1"}


def test_the_count_of_switches_itself() -> None:
    truth = [[Box(0, 0, 50, 100, "a"), Box(300, 0, 50, 100, "b")]] * 4
    same = [[Box(0, 0, 50, 100, "1"), Box(300, 0, 50, 100, "2")]] * 4
    swapped = [[Box(0, 0, 50, 100, "2"), Box(300, 0, 50, 100, "1")]]
    assert identity_switches(truth, same) == 0
    assert identity_switches(truth, same[:2] + swapped + same[:1]) == 4
    assert identity_switches(truth, [same[0], [], [Box(0, 0, 50, 100, "9")], same[0]]) == 2
