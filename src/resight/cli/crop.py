"""``resight crop``: crop people from video or frames into one folder per camera."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from resight.cli._common import Json, count, option, print_json, say, verb

app = verb("Crop people from video or frames into one folder per camera.")

_LIMITS = {
    "people": (
        "OpenCV's people detector misses people who are sitting, cut off or small, and mistakes "
        "some posts and trees for people: check the crops, or give --boxes from a better detector"
    ),
    "motion": (
        "background subtraction finds whatever moves in front of a fixed camera and merges people "
        "who walk together: check the crops, or give --boxes from a better detector"
    ),
}


@app.command()
def crop(
    source: Annotated[Path, typer.Argument(help="Video file or folder of frames")],
    out: Annotated[Path, option("DIR", "Output folder: crops in DIR/CAMERA/ and a table")],
    camera: Annotated[str, option("NAME", "Name of the camera")],
    boxes: Annotated[
        Path | None, option("FILE", "MOT file, or CSV with frame,x,y,w,h[,id]", "detect people")
    ] = None,
    find: Annotated[str, option("METHOD", "Detector without --boxes: people, motion")] = "people",
    every: Annotated[int, option("N", "Use every Nth frame", min=1)] = 1,
    fps: Annotated[float | None, option("RATE", "Frames per second", "as in the video")] = None,
    start: Annotated[str, option("TIME", "Time of the first frame: seconds or ISO date")] = "0",
    min_height: Annotated[int, option("PIXELS", "Minimum height of a person", min=32)] = 64,
    json: Json = False,
) -> None:
    """Crop people; the folder can be given to `resight gallery add`."""
    from resight._progress import progress
    from resight.datasets.video import cut
    from resight.times import parse

    with progress("frames", None) as advance:
        done = cut(
            source,
            out,
            camera,
            boxes=boxes,
            find=find,
            every=every,
            fps=fps,
            start=parse(start),
            min_height=min_height,
            on_frame=advance,
        )
    if boxes is None:
        say(f"note: {_LIMITS[find]}")
    if json:
        counts = {"crops": done.crops, "frames": done.frames, "left_out": done.left_out}
        print_json({"schema": "resight.crop/1", **counts, "table": str(done.table)})
    elif not done.crops:
        print(f"found nobody in {count(done.frames, 'frame')}; nothing was written")
    else:
        print(
            f"wrote {count(done.crops, 'crop')} from {count(done.frames, 'frame')}; skipped "
            f"{done.left_out} boxes too small or outside. Next: resight gallery add GALLERY {out}"
        )
