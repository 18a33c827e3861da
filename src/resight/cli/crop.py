"""``resight crop``: cut people out of video or frames into a folder per camera."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from resight.cli._common import print_json, say, verb

app = verb("Cut people out of video or frames into a folder per camera.")

_LIMITS = {
    "people": (
        "OpenCV's people detector misses people who sit, are cut off or are small, and takes some "
        "posts and trees for people: look through the crops, or give --boxes of a better detector"
    ),
    "motion": (
        "background subtraction finds whatever moves before a fixed camera, and takes people who "
        "walk together for one: look through the crops, or give --boxes of a better detector"
    ),
}


@app.command()
def crop(
    source: Annotated[Path, typer.Argument(help="a video file, or a folder of frames")],
    out: Annotated[Path, typer.Option(help="crops go to OUT/CAMERA/, their times to a table")],
    camera: Annotated[str, typer.Option(help="the camera's name")],
    boxes: Annotated[
        Path | None, typer.Option(metavar="FILE", help="boxes: MOT file, or CSV frame,x,y,w,h[,id]")
    ] = None,
    find: Annotated[str, typer.Option(help="without --boxes: people or motion")] = "people",
    every: Annotated[int, typer.Option(help="take one frame of so many", min=1)] = 1,
    fps: Annotated[float | None, typer.Option(help="frames a second, if not told")] = None,
    start: Annotated[
        str, typer.Option(metavar="TIME", help="time of the first frame: seconds or an ISO date")
    ] = "0",
    min_height: Annotated[int, typer.Option(help="smallest person, in pixels", min=32)] = 64,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Cut people out; the folder can be given to `resight gallery add`."""
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
        print(f"found nobody in {done.frames} frames; nothing was written")
    else:
        print(
            f"cut {done.crops} crops out of {done.frames} frames, {done.left_out} boxes were too "
            f"small or outside. Next: resight gallery add GALLERY {out}"
        )
