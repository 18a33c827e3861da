"""``resight crop``: crop people from video or frames into one folder per camera."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from resight.cli._common import Json, answer, count, flag, option, say

_LIMITS = {
    "people": "OpenCV's people detector misses people who are sitting, cut off or small, and "
    "mistakes some posts and trees for people",
    "motion": "background subtraction finds whatever moves in front of a fixed camera and merges "
    "people who walk together",
}
_DETECTOR = ("--detector", "--find")
_NOBODY = "Try a smaller --min-height or --confidence, or another --class or --detector"


def crop(
    source: Path = typer.Argument(help="Video file or folder of frames"),
    out: Path = option(..., "DIR", "Output folder: crops in DIR/CAMERA/ and a table"),
    camera: str = option(..., "NAME", "Name of the camera"),
    boxes: Path | None = option(
        None, "FILE", "MOT file, or CSV with frame,x,y,w,h[,id]", "detect people"
    ),
    detector: str = option(
        "people", "FILE", "ONNX network (YOLOX, YOLOv8, ...), people or motion", True, *_DETECTOR
    ),
    class_: str = option(
        "person", "NAME", "With a network: class to find, by name or number", True, "--class"
    ),
    confidence: float = option(
        0.5, "SCORE", "With a network: score needed to start a track", min=0, max=1
    ),
    per_track: int = option(5, "N", "Keep the N best crops of each track", min=1),
    all_: bool = flag("--all", "Keep all crops"),
    overwrite: bool = flag("--overwrite", "Replace earlier crops of this source"),
    every: int = option(1, "N", "Use every Nth frame", min=1),
    fps: float | None = option(None, "RATE", "Frames per second", "as in the video"),
    start: str = option("0", "TIME", "Time of the first frame: seconds or ISO date"),
    min_height: int = option(64, "PIXELS", "Minimum height of a person", min=32),
    json: Json = False,
) -> None:
    """Crop people; pass the output folder to `resight gallery add`."""
    from resight._progress import progress
    from resight.datasets.video import cut
    from resight.times import parse

    with progress("frames", None) as advance:
        done = cut(
            source,
            out,
            camera,
            boxes=boxes,
            find=detector,
            wanted=class_,
            confidence=confidence,
            per_track=None if all_ else per_track,
            every=every,
            fps=fps,
            start=parse(start),
            min_height=min_height,
            overwrite=overwrite,
            on_frame=advance,
        )
    if boxes is None and detector in _LIMITS:
        say(f"note: {_LIMITS[detector]}: check the crops, or give a network with --detector")
    text = (
        f"wrote {count(done.crops, 'crop')} of {count(done.tracks, 'track')} from "
        f"{count(done.frames, 'frame')}; skipped {done.left_out} boxes too small or outside. "
        f"Next: resight gallery add GALLERY {out}"
    )
    if not done.crops:
        text = f"found nobody in {count(done.frames, 'frame')}; nothing was written. {_NOBODY}"
    answer(json, {"schema": "resight.crop/1", **asdict(done), "table": str(done.table)}, text)
