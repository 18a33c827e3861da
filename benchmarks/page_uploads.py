"""Kill the server twice while it adds uploads: resumed, nothing twice, nothing lost.

A video and images are uploaded to ``resight serve`` as two jobs. It is killed (SIGKILL) while
people are cut out of the video, started again, killed when a third of the images is in, and started
once more. The gallery must then equal one to which the same was added without a server, what was
stored before a kill must not have been stored again, and no upload may be left.
``python -m benchmarks.page_uploads --reduced`` is a small form with short leases, for tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from resight import KXQDA, connect
from resight._files import digest_of
from resight.client import RemoteGallery
from resight.datasets import read_table
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras, draw_person
from resight.datasets.video import cut
from resight.gallery import Gallery, users
from resight.gallery.checking import check
from resight.gallery.jobs import LEASE, Job
from resight.models.model import Model

DESCRIPTOR = "whos-dagger"
CAMERA = "yard"  # of the video
_SERVE = "import sys; from resight.cli import main; sys.exit(main(['serve', *sys.argv[1:]]))"
_QUICK = "from resight.gallery import jobs; jobs.LEASE, jobs.BEAT, jobs.POLL = 1.0, 0.05, 0.05; "


@dataclass(frozen=True)
class Scale:
    """How much is uploaded (images: of two cameras each), and how the server is started."""

    people: int = 250
    walkers: int = 12  # in the video, one after the other
    frames: int = 40  # of each
    server: str = _SERVE
    poll: float = 0.1
    patience: float = 600.0  # seconds after which a job that has not come so far counts as lost


REDUCED = Scale(people=64, walkers=2, frames=15, server=_QUICK + _SERVE, poll=0.01, patience=60.0)


def run(scale: Scale | None = None) -> str:
    """Upload, kill, start again; raise unless all is there once."""
    scale = scale or Scale()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = draw_cameras(folder / "images", scale.people, 2)
        video = _film(folder / "video.avi", scale)
        model = _model(images)
        whole = _added_undisturbed(folder, model, images, video)
        gallery = Gallery.create(folder / "gallery", model)
        users.add_user(gallery.engine, "ann", "teacher", "correct horse battery")
        token = users.issue(gallery.engine, "ann", "teacher", "token")
        place = folder / "gallery"
        with _served(place, scale, token) as remote:
            jobs = [remote.add(video, camera=CAMERA), remote.add(images)]
            first = _wait(remote, jobs[0], scale, lambda job: job.words == "cutting people out")
        stored = _times_of_storing(gallery)
        with _served(place, scale, token) as remote:
            second = _wait(remote, jobs[1], scale, lambda job: 3 * job.done >= job.total > 0)
        stored |= _times_of_storing(gallery)
        with _served(place, scale, token) as remote:
            ended = [_wait(remote, job, scale, lambda job: not job.open) for job in jobs]
            _wait_until_empty(place / "spool")
        lines = [
            f"a video of {scale.walkers * scale.frames} frames and {len(images)} images, uploaded "
            f"to `resight serve` as two jobs, {DESCRIPTOR}",
            f"  killed while the first job was {first.words}",
            f"  killed again when the second job told {second.done} of {second.total}",
            *(f"  job: {job.state}, {job.words}, {job.failed} failed" for job in ended),
            f"  {len(gallery)} sightings, {len(whole)} expected",
        ]
        wrong = _problems(gallery, whole, stored, [first, second], ended)
        gallery.close()
    lines.append(f"  problems: {'; '.join(wrong) or 'none'}")
    if wrong:
        raise RuntimeError("\n".join(lines))
    return "\n".join(lines)


def _problems(
    gallery: Gallery,
    whole: list[tuple[str, ...]],
    stored: dict[str, float],
    killed: list[Job],
    ended: list[Job],
) -> list[str]:
    """Say what is not as it should be."""
    n_crops = len(whole) - ended[1].total
    totals = [(job.state, job.done, job.failed) for job in ended]
    now = _times_of_storing(gallery)
    held = {
        "both jobs were open when the server was killed": all(job.open for job in killed),
        "the second kill was part of the way": 0 < killed[1].done < killed[1].total,
        "both jobs ended without a failure": totals
        == [("done", n_crops, 0), ("done", ended[1].total, 0)],
        "people were found in the video": n_crops > 0,
        "every sighting is there once": _content(gallery) == whole,
        "what was stored is not stored again": stored.items() <= now.items(),
        "nothing is left of the uploads": not list((Path(gallery.uri) / "spool").iterdir()),
        "the gallery is whole": check(gallery.uri).clean,
    }
    return [f"not so: {what}" for what, holds in held.items() if not holds]


def _film(file: Path, scale: Scale) -> Path:
    """Draw people who cross the picture one after the other."""
    writer = cv2.VideoWriter(str(file), cv2.VideoWriter.fourcc(*"MJPG"), 10, (320, 240))
    for walker in range(scale.walkers):
        person = draw_person(walker, size=(200, 100))
        for step in range(scale.frames):
            picture = np.full((240, 320, 3), 128, np.uint8)
            left = 10 + 200 * step // scale.frames
            picture[20:220, left : left + 100] = person
            writer.write(np.ascontiguousarray(picture[..., ::-1]))
    writer.release()
    return file


def _model(images: Sightings) -> Model:
    """Fit a model on the first people; which one does not matter here."""
    few = images.select(images.persons <= "0010")
    model = Model((DESCRIPTOR,), KXQDA())
    return model.fit(model.describe(few.files()), few.persons, few.cameras)


def _added_undisturbed(
    folder: Path, model: Model, images: Sightings, video: Path
) -> list[tuple[str, ...]]:
    """Add the same without a server, and return what is there then."""
    gallery = Gallery.create(folder / "whole", model)
    gallery.add(images)
    gallery.add(read_table(cut(video, folder / "crops", CAMERA).table))
    content = _content(gallery)
    gallery.close()
    return content


def _content(gallery: Gallery) -> list[tuple[str, ...]]:
    """Return all that is known of each sighting but when it was stored, with its image."""
    table = gallery.view.table
    columns = (table.ids, table.persons, table.cameras, table.times, table.sequences, table.sources)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return sorted((*map(str, row), digest_of(gallery.image(row[0]))) for row in rows)


def _times_of_storing(gallery: Gallery) -> dict[str, float]:
    table = gallery.view.table
    return dict(zip(table.ids.tolist(), table.added.tolist(), strict=True))


@contextmanager
def _served(place: Path, scale: Scale, token: str) -> Iterator[RemoteGallery]:
    """Run the server in a process that is killed at the end."""
    words = [sys.executable, "-c", scale.server, str(place), "--no-browser"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = (re.search(r"http://\S+/", line) for line in process.stderr)
            address = next(filter(None, found), None)
            if address is None:
                raise RuntimeError("the server ended without telling its address")
            yield connect(address[0], token)
        finally:
            process.kill()


def _wait(remote: RemoteGallery, job: Job, scale: Scale, reached: Callable[[Job], bool]) -> Job:
    """Wait until a job has come so far."""
    end = time.monotonic() + scale.patience
    while time.monotonic() < end:
        job = Job(**remote.get(f"/jobs/{job.key}.json"))
        if reached(job) or not job.open:
            return job
        time.sleep(scale.poll)
    raise RuntimeError(f"job {job.kind} is {job.state} ({job.words}) after {scale.patience:.0f} s")


def _wait_until_empty(spool: Path) -> None:
    """Wait until uploads are removed; those of a killed process, once its lease has ended."""
    end = time.monotonic() + 2 * LEASE
    while list(spool.iterdir()) and time.monotonic() < end:
        time.sleep(0.05)


if __name__ == "__main__":
    print(run(REDUCED if "--reduced" in sys.argv[1:] else None))
