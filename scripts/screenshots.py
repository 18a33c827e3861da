"""Draw the pictures of the web page in docs/images from synthetic cameras, at two widths.

It makes a gallery of drawn people, serves it with the real command, and photographs the ten main
pages in Chromium: ``python scripts/screenshots.py [--out DIR] [--dark]``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from resight import KXQDA
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Filter, Gallery
from resight.gallery.groups import group, open_groups
from resight.gallery.jobs import Jobs, Worker
from resight.gallery.log import Actor
from resight.models.calibrating import add_calibration
from resight.models.model import Model

OUT = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTHS = {"wide": (1280, 860), "phone": (390, 844)}
FLAGS = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"]
NAMES = ("Backpack", "Striped shirt", "Dark coat", "Red shirt", "Blue jacket", "White shirt")
CAMERAS = {"camera-1": "entrance", "camera-2": "platform", "camera-3": "car park"}
PLACES = (
    "search", "results", "compare", "people", "person",
    "unknowns", "add", "answers", "improve", "log",
)  # fmt: skip
START = 1.7e9
LARGEST = 150_000  # bytes of a picture


def make_gallery(folder: Path) -> Gallery:
    """Draw 44 people before three cameras, three pictures a passage; name and answer some.

    The model has learned from 28 of them and from 200 others, enough to say who is found.
    """
    everybody = draw_cameras(folder / "cameras", 244, 3, 3, seed=4, size=(256, 128))
    model = Model(("whos-star",), KXQDA())
    learned = everybody.select((everybody.persons <= "0028") | (everybody.persons > "0044"))
    training = model.describe(learned.files()), learned.persons, learned.cameras
    add_calibration(model.fit(*training), *training)
    drawn = everybody.select(everybody.persons <= "0044")
    labelled = drawn.persons <= "0028"
    cameras = np.array([CAMERAS[camera] for camera in drawn.cameras.tolist()])
    passages = np.char.add(np.char.add(cameras, "-"), drawn.persons)
    minutes = np.unique(passages, return_inverse=True)[1] * 17 % 132
    shots = np.array([int(Path(path).stem) for path in drawn.paths.tolist()])
    sightings = replace(
        drawn,
        persons=np.where(labelled, drawn.persons, ""),
        cameras=cameras,
        times=START + 660.0 * minutes + 2.0 * shots,
        sequences=np.array([f"passage {number}" for number in minutes.tolist()]),
    )
    gallery = Gallery.create(folder / "gallery", model)
    gallery.add(sightings)
    _answer(gallery)
    return gallery


def _answer(gallery: Gallery) -> None:
    """Name people, accept some groups, and train a model that waits to be adopted."""
    view, by = gallery.view, Actor("ann", "page", "127.0.0.1", "lost child")
    for number, name in enumerate(NAMES, 1):
        one = str(view.table.ids[view.persons == f"{number:04d}"][0])
        gallery.teach("name", one, person=name, by=by)
    group(gallery)
    from resight.gallery.groups import accept

    for one in list(open_groups(gallery))[:6]:
        accept(gallery, one.sightings, by=by)
    jobs = Jobs(gallery)
    draft = jobs.draft()
    pictures = [gallery.image(str(key)) for key in view.table.ids[:12]]
    for number, content in enumerate(pictures):
        draft.write(f"loading bay/{number}.png", [content])
    draft.write("loading bay/broken.png", [b"not an image"])
    jobs.start("add", by, draft=draft, camera="loading bay")
    jobs.start("improve", by)
    while Worker(jobs).work_once():
        pass
    group(gallery)
    jobs.close()


def addresses(gallery: Gallery) -> dict[str, str]:
    """Return the address of each picture."""
    view = gallery.view
    unknown = view.table.ids[(view.persons == "") & (view.table.cameras == "entrance")]
    like = next((one for one in unknown.tolist() if _is_found(gallery, one)), unknown[0])
    other = gallery.search_like(str(unknown[0]), 1, by_track=True)[0].id
    paths = {
        "search": "", "people": "people?order=sightings", "person": "person?name=Backpack",
        "unknowns": "unknowns", "add": "add", "answers": "taught", "improve": "refit", "log": "log",
        "results": f"search?like={like}&others=1", "compare": f"why?like={unknown[0]}&hit={other}",
    }  # fmt: skip
    return {place: paths[place] for place in PLACES}


def _is_found(gallery: Gallery, sighting: str) -> bool:
    """Tell whether the page will answer "Found": the model knows nothing of these people."""
    hits = gallery.search_like(sighting, where=Filter(exclude_cameras=("entrance",)), by_track=True)
    return hits.presence is not None and hits.presence.answer == "found"


def photograph(gallery: Gallery, out: Path, scheme: Any, only: tuple[str, ...]) -> None:
    """Serve the gallery and write one picture for each page and width."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "resight", "serve", gallery.uri, "--no-browser", "--no-login"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    address = next(found[0] for line in server.stderr if (found := re.search(r"http://\S+", line)))
    try:
        with sync_playwright() as playwright:
            chromium = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            for width, size in WIDTHS.items():
                viewport: Any = dict(zip(("width", "height"), size, strict=True))
                context = browser.new_context(viewport=viewport, color_scheme=scheme)
                page = context.new_page()
                for place, path in addresses(gallery).items():
                    if only and place not in only:
                        continue
                    page.goto(address + path)
                    page.wait_for_load_state("networkidle")
                    file = out / f"page-{place}-{width}.png"
                    page.screenshot(path=file)
                    _shrink(file)
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
        server.stderr.close()


def _shrink(file: Path) -> None:
    """Reduce the colours until the picture has less than 150 kB."""
    picture = Image.open(file).convert("RGB")
    for colours in (256, 128, 64, 32):
        small = picture.quantize(colours, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        small.save(file, optimize=True)
        if file.stat().st_size < LARGEST:
            return


def main() -> None:
    """Write all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--gallery", type=Path, help="a gallery made before (default: make one)")
    parser.add_argument("only", nargs="*", help=f"pages, of {', '.join(PLACES)} (default: all)")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        at = given.gallery or Path(folder)
        made = (at / "gallery").is_dir()
        gallery = Gallery.open(at / "gallery") if made else make_gallery(at)
        photograph(gallery, given.out, "dark" if given.dark else "light", tuple(given.only))
        gallery.close()


if __name__ == "__main__":
    main()
