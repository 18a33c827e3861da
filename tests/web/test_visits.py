"""The five visits of docs/design-page.md in a real Chromium, wide and light, small and dark."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from browser_kit import AXE, CHROMIUM, FLAGS, start, stop
from resight.gallery import Gallery
from resight.gallery.groups import Group, Groups

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: run scripts/system_packages.py"),
]
WAYS = [(1280, "light"), (390, "dark")]
PLACES = [
    "", "search?like={a}&k=8", "search?like={a}&after=2031-01-01", "search?like={a}&after=noon",
    "why?like={a}&hit={b}", "people", "people?query=nobody", "person?name=0001",
    "person/erase?name=0001", "unknowns", "add", "taught", "refit", "log", "nowhere",
]  # fmt: skip


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def town(demo_once: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A copy of the demo for all tests of this file; each answers about people of its own."""
    folder = tmp_path_factory.mktemp("town") / "gallery"
    shutil.copytree(demo_once.folder, folder)
    return replace(demo_once, folder=folder)


@pytest.fixture(scope="module")
def pairs(demo_once: Any) -> list[tuple[str, str]]:
    """Two sightings of each person who was unknown at first."""
    return demo_once.unlabelled_pairs(Gallery.open(demo_once.folder))


@pytest.fixture(scope="module")
def address(town: Any, pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Serve it, with groups that the visits go through instead of those the job would find."""
    gallery = Gallery.open(town.folder)
    groups = [Group(f"g{n}", [*pair, pairs[n + 4][0]], 0.9) for n, pair in enumerate(pairs[:4])]
    model = gallery.view.manifest.current.fingerprint
    Groups(model, 90, "", "hand", groups, [pairs[9][0]], seconds=1e6).store(gallery.engine)
    gallery.close()
    process, told = start(town.folder)
    yield told
    assert stop(process) in (0, -signal.SIGINT, 130)


@dataclass
class Visitor:
    """A page of one size and colour scheme, and what its console complained about."""

    page: Any
    address: str
    width: int
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> Any:
        """Open a page; nothing may be wider than the screen."""
        self.page.goto(self.address + path)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width, path
        return self.page


@pytest.fixture(params=WAYS, ids=["wide-light", "phone-dark"])
def visitor(request: pytest.FixtureRequest, chromium: Any, address: str) -> Iterator[Visitor]:
    width, scheme = request.param
    size = {"width": width, "height": 900 if width > 800 else 844}
    context = chromium.new_context(viewport=size, color_scheme=scheme, accept_downloads=True)
    made = Visitor(context.new_page(), address, width)
    made.page.set_default_timeout(60_000)  # the machine may be busy
    bad = ("error", "warning")
    made.page.on("console", lambda m: made.complaints.append(m.text) if m.type in bad else None)
    made.page.on("pageerror", lambda error: made.complaints.append(str(error)))
    yield made
    context.close()
    assert made.complaints == []


def test_find_somebody_now(visitor: Visitor, town: Any, pairs: list[tuple[str, str]]) -> None:
    page = visitor.go("")
    page.set_input_files("#image", [str(file) for file in town.sightings.files()[20:22]])
    page.wait_for_selector("#results .card")  # choosing them was enough
    assert page.locator(".asked img").count() == 2
    assert "Not stored" in page.inner_text(".query")

    page = visitor.go(f"search?like={pairs[8][0]}&others=1")
    page.click(".query summary:has-text('Filters')")
    asked: list[str] = []
    page.on(
        "request", lambda request: asked.append(request.url) if "/search?" in request.url else 0
    )
    page.check('input[name="camera"][value="camera-3"]')
    page.wait_for_url("**camera=camera-3**")
    cards = "[...document.querySelectorAll('#results .card')]"
    page.wait_for_function(f"{cards}.every(card => card.innerText.includes('camera-3'))")
    page.fill("#before", "2020-01-01T00:00")
    page.press("#before", "Enter")
    page.wait_for_selector("text=No results match these filters")
    page.fill("#after", "2030-01-01T00:00")
    page.press("#after", "Enter")
    page.wait_for_selector("#wrong-before")  # beside the field, which is tied to it
    assert page.get_attribute("#before", "aria-describedby") == "wrong-before"
    assert len(asked) == 3  # one request for each change
    page.click("a.chip:has-text('after')")
    page.wait_for_selector("text=any time")
    page.click("text=any time")
    page.wait_for_selector("#results .card")

    top = page.locator("#results .card").first.bounding_box()
    assert top["y"] < (844 if visitor.width < 800 else 900)  # on the first screen
    page.click("#results .card .pick")
    page.wait_for_selector(".compare.zoomable")
    frame = page.locator(".frame").first
    frame.click(position={"x": 20, "y": 60})
    scale = "[...document.querySelectorAll('.frame img')].map(img => img.style.transform)"
    assert page.evaluate(scale) == ["scale(3)", "scale(3)"]
    assert page.locator(".explanation .crops").is_visible()


def test_24_results_are_short_on_a_phone(visitor: Visitor, pairs: list[tuple[str, str]]) -> None:
    page = visitor.go(f"search?like={pairs[8][0]}&others=1")
    if visitor.width < 800:
        assert page.evaluate("document.querySelector('#results').scrollHeight") < 4600
    broken = """[...document.querySelectorAll('.facts, .verdict button')].filter(
        one => one.scrollWidth > one.clientWidth + 1).length"""
    assert page.evaluate(broken) == 0  # no number is cut or wrapped


def test_answers_where_they_are_given(visitor: Visitor, pairs: list[tuple[str, str]]) -> None:
    (a, b), other = pairs[10 if visitor.width > 800 else 11], pairs[12][1]
    page = visitor.go(f"search?like={a}&others=1&k=90")
    here = page.url
    page.click(f"#verdict-{b} button.same")
    page.wait_for_selector(f"#verdict-{b} .badge.same")
    assert page.inner_text(f"#who-{b}").startswith("person ")  # no longer unknown
    assert page.inner_text("#query-person").startswith("person ")
    page.click(f"#verdict-{b} button.different")  # changed in place
    page.wait_for_selector(f"#verdict-{b} .badge.different")
    page.click(f"#verdict-{b} button.undo")
    page.wait_for_selector(f"#verdict-{b} button.same")
    if visitor.width > 800:  # keys
        page.focus(f'.card[data-id="{other}"] .pick')
        page.keyboard.press("n")
        page.wait_for_selector(f"#verdict-{other} .badge.different")
        focused = "document.activeElement.closest('.card')?.dataset.id"
        assert page.evaluate(focused) == other  # the focus stays
        page.keyboard.press("ArrowRight")
        assert page.evaluate(focused) != other
        page.keyboard.press("u")
        page.wait_for_selector(f"#verdict-{other} button.different")
    assert page.url == here


def test_go_through_the_unknowns(visitor: Visitor) -> None:
    page = visitor.go("unknowns")
    left = int(re.findall(r"(\d+) group", page.inner_text("main"))[0])
    page.uncheck(".card input.selected >> nth=2")
    page.fill("#name", f"Person of {visitor.width}")
    page.click("#accept")
    page.wait_for_selector("text=Saved as")
    assert f"{left - 1} group" in page.inner_text("main")
    page.click("text=Not sure")  # of the next, which is there
    page.wait_for_selector("text=shown again at the end")
    page.click("button.undo")
    page.wait_for_selector("#group")
    page.goto(f"{visitor.address}people?query=Person+of+{visitor.width}")
    page.click(".card .name a")
    page.wait_for_selector("text=2 sightings by 2 cameras")


def test_correct_a_person(visitor: Visitor) -> None:
    name = "0005" if visitor.width > 800 else "0006"
    page = visitor.go(f"person?name={name}")
    page.click("summary:has-text('Rename')")
    page.fill("#new", f"Ann {visitor.width}")
    page.click("button:text-is('Rename')")
    page.wait_for_selector(f"h1:has-text('Ann {visitor.width}')")
    page.check(".card input.selected >> nth=0")
    page.fill("#split-name", f"Ben {visitor.width}")
    page.click("text=Make a new person")
    page.wait_for_selector(f"h1:has-text('Ben {visitor.width}')")
    page.wait_for_selector("text=1 sighting by 1 camera")
    page.click("button.undo")
    page.goto(f"{visitor.address}person?name=Ann+{visitor.width}")
    page.wait_for_selector("text=3 sightings by 3 cameras")
    page.check(".card input.selected >> nth=1")
    page.click("text=Not this person")
    page.wait_for_selector("text=2 sightings by 2 cameras")
    page.click("summary:has-text('Merge')")
    page.locator("#merge .card button").first.click()  # the most similar is offered first
    page.wait_for_selector(r"text=/[3-9] sightings by \d cameras/")  # of both
    page.click("button.undo")
    page.wait_for_load_state()


def test_improve_the_model(visitor: Visitor, town: Any, pairs: list[tuple[str, str]]) -> None:
    if visitor.width > 800:
        gallery = Gallery.open(town.folder)
        for pair in pairs[13:17]:
            gallery.teach("same", *pair)
        gallery.close()
    page = visitor.go("refit")
    if visitor.width > 800:
        page.click("#start-refit")
    else:
        page.click("text=Train a new model")
    page.wait_for_selector("#adopt")
    assert re.search(r"\d+% → \d+%", page.inner_text("#refit .gain"))
    assert "95% between" in page.inner_text("#refit")
    if visitor.width > 800:
        page.click("#adopt")
        page.wait_for_selector("#undo-refit")
        page.click("#undo-refit")
        page.wait_for_selector("text=Went back to the earlier model")
        assert page.locator("text=used before").count() + page.locator("text=not used").count()


def test_who_searched_for_what(visitor: Visitor, pairs: list[tuple[str, str]]) -> None:
    like = pairs[8][0]
    visitor.go(f"search?like={like}&camera=camera-2")
    page = visitor.go("log")
    row = page.locator("tbody tr").filter(has_text=like).first.inner_text()
    assert "search" in row
    assert "camera-2" in row
    assert "anybody" in row


def test_adding(visitor: Visitor, town: Any) -> None:
    page = visitor.go("add")
    page.set_input_files("#files", [str(file) for file in town.sightings.files()[:3]])
    page.fill("#camera", f"yard {visitor.width}")
    page.click("button:text-is('Add')")
    page.wait_for_selector("text=3 of 3 sightings are in the gallery")  # without reloading


def test_without_javascript(
    chromium: Any, address: str, town: Any, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    (tmp_path / "note.txt").write_text("no image")
    page.set_input_files("#image", tmp_path / "note.txt")
    page.click(".drop button")
    assert "not an image" in page.inner_text(".notice")
    page.goto(f"{address}?known=no")
    page.click(".card .pick >> nth=0")
    page.click("summary:has-text('Filters')")
    page.check('input[name="camera"][value="camera-2"]')
    with page.expect_navigation():  # a click does not wait for the whole page that follows
        page.click("#filters button")
    assert "camera=camera-2" in page.url
    assert page.locator("#results .card").count() > 0
    a, b = pairs[7]
    for answer in ("same", "undo"):
        page.goto(f"{address}search?like={a}&k=90")
        with page.expect_navigation():
            page.click(f"#verdict-{b} button.{answer}")
    page.goto(f"{address}search?like={a}&k=90")
    assert page.locator(f"#verdict-{b} button.same").count() == 1
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_is_accessible(
    chromium: Any, address: str, pairs: list[tuple[str, str]], width: int, scheme: str
) -> None:
    """Axe finds nothing, nothing is wider than the screen."""
    size = {"width": width, "height": 900}
    context = chromium.new_context(viewport=size, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    a, b = pairs[9]
    for path in PLACES:
        page.goto(address + path.format(a=a, b=b))
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run()")["violations"]
        told = [(v["id"], v["impact"], v["nodes"][0]["html"][:200]) for v in found]
        assert told == [], path
    context.close()


REACHABLE = """
    [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
    .filter(
        one => one.checkVisibility() && !one.disabled && one.type !== 'hidden' && one.tabIndex >= 0
        && !one.closest('details:not([open]) > :not(summary)'))"""


def test_everything_is_reached_by_keyboard(
    chromium: Any, address: str, pairs: list[tuple[str, str]]
) -> None:
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    a, b = pairs[9]
    for path in PLACES:
        page.goto(address + path.format(a=a, b=b).replace("k=8", "k=3"))
        page.evaluate(f"window.missed = new Set({REACHABLE})")
        for _ in range(page.evaluate("window.missed.size") + 40):  # dates have several stops each
            page.keyboard.press("Tab")
            page.evaluate("window.missed.delete(document.activeElement)")
        missed = page.evaluate("[...window.missed].map(one => one.outerHTML.slice(0, 150))")
        assert missed == [], path
    page.close()


def test_printing_leaves_the_navigation_out(chromium: Any, address: str) -> None:
    page = chromium.new_page()
    page.goto(f"{address}person?name=0001")
    page.emulate_media(media="print")
    assert not page.locator(".places").is_visible()
    assert not page.locator(".actions").is_visible()
    assert page.locator(".card:not(.wide) img").first.is_visible()
    page.close()
