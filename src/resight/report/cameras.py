"""Rank 1 from camera to camera, as a table that is shaded and read aloud alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resight.evaluation.camera_pairs import CameraPairs

_STRONGEST = 0.55  # opacity of the shade at 100 percent: figures stay readable on it


@dataclass(frozen=True)
class Cell:
    """One pair of cameras; empty where nobody was asked for."""

    percent: float | None
    asked: int
    shade: float  # opacity


@dataclass(frozen=True)
class CameraTable:
    """One row for each camera that asks, one column for each that is searched."""

    title: str
    cameras: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def camera_table(run: dict[str, Any]) -> CameraTable | None:
    """Make the table of a run of a result; None for two cameras."""
    told = run.get("camera_pairs")
    if told is None:
        return None
    pairs = CameraPairs.from_dict(told)
    rows = tuple(
        (camera, tuple(map(_cell, pairs.rank1[i].tolist(), pairs.asked[i].tolist())))
        for i, camera in enumerate(pairs.cameras)
    )
    return CameraTable(run["title"], pairs.cameras, rows)


def _cell(rank1: float, asked: int) -> Cell:
    if not asked:
        return Cell(None, 0, 0.0)
    return Cell(100.0 * rank1, asked, round(_STRONGEST * rank1, 3))
