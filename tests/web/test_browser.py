"""The page in a real Chromium, over the real command."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from resight.gallery import Gallery
from resight.gallery.checking import check

CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: run scripts/system_packages.py"),
]


def start(folder: Path, *options: str, login: bool = False) -> tuple[subprocess.Popen[str], str]:
    """Run ``resight serve`` and return its process and address."""
    command = [sys.executable, "-m", "resight", "serve", str(folder), "--no-browser", *options]
    command += [] if login else ["--no-login"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r"http://\S+", line)
        if found:
            return process, found[0]
    raise AssertionError("the server ended without telling its address")


def stop(process: subprocess.Popen[str], how: int = signal.SIGINT) -> int:
    process.send_signal(how)
    code = process.wait(30)
    assert process.stderr is not None
    process.stderr.close()
    return code


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def town(demo_once: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A copy of the demo for all tests of this file; each teaches about people of its own."""
    folder = tmp_path_factory.mktemp("town") / "gallery"
    shutil.copytree(demo_once.folder, folder)
    return replace(demo_once, folder=folder)


@pytest.fixture(scope="module")
def address(town: Any) -> Iterator[str]:
    process, told = start(town.folder)
    yield told
    assert stop(process) in (0, -signal.SIGINT, 130)


@pytest.fixture
def pairs(town: Any, demo_once: Any) -> list[tuple[str, str]]:
    """Two sightings of each person who was unknown at first."""
    return town.unlabelled_pairs(Gallery.open(demo_once.folder))


@pytest.fixture
def complaints() -> list[str]:
    """Console errors and uncaught exceptions of the pages that were open."""
    return []


@pytest.fixture
def page(chromium: Any, complaints: list[str]) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    opened.on(
        "console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None
    )
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()
    assert complaints == []


def all_cards(page: Any) -> list[str]:
    return [str(card.get_attribute("data-id")) for card in page.locator("#results .card").all()]


def confirm(page: Any, address: str, pair: tuple[str, str]) -> None:
    """Search for the first of a pair and press Same on the card of the second."""
    page.goto(f"{address}search?like={pair[0]}&others=1&k=90")
    page.click(f"#verdict-{pair[1]} button.same")
    page.wait_for_selector(f"#verdict-{pair[1]} .badge.same")


def test_search_filter_teach_refit_undo_export(
    page: Any, address: str, town: Any, pairs: list[tuple[str, str]]
) -> None:
    page.goto(address)
    page.click(".grid.small .pick")
    page.wait_for_selector("#results .card")
    assert page.locator("#results .card").count() == 24

    page.click("summary")
    page.check('input[name="camera"][value="camera-3"]')
    page.wait_for_url("**camera=camera-3**")
    cards = "[...document.querySelectorAll('#results .card')]"
    page.wait_for_function(f"{cards}.every(card => card.innerText.includes('camera-3'))")
    page.fill("#after", "2030-01-01")
    page.press("#after", "Enter")
    page.wait_for_selector("text=No results match these filters")
    page.click("text=any time")
    page.wait_for_selector("#results .card")
    assert "after=" not in page.url

    for pair in pairs[:3]:
        confirm(page, address, pair)
    query = pairs[3][0]
    page.goto(f"{address}search?like={query}&others=1")
    unknown = {key for pair in pairs[4:] for key in pair}
    wrong = next(key for key in all_cards(page) if key in unknown)
    page.click(f"#verdict-{wrong} button.different")
    page.wait_for_selector(f"#verdict-{wrong} .badge.different")
    assert page.inner_text("#taught-count") == "4"

    before = [page.inner_text(f'.card[data-id="{key}"] .facts') for key in all_cards(page)[:8]]
    page.click("#start-refit")
    page.wait_for_selector("#refit .gain")
    page.wait_for_selector("#refit button")
    if page.locator("text=Use it anyway").count():
        page.click("text=Use it anyway")
    page.wait_for_selector("#undo-refit")
    assert re.search(r"\d+% → \d+%", page.inner_text("#refit .gain"))
    page.wait_for_function(
        "text => document.querySelector('#results .card .facts').innerText !== text", arg=before[0]
    )  # the ranking on the page asked for itself again
    after = [page.inner_text(f'.card[data-id="{key}"] .facts') for key in all_cards(page)[:8]]
    assert after != before

    page.click("#undo-refit")
    page.wait_for_selector("text=Went back to the earlier model")
    page.wait_for_function(
        "text => document.querySelector('#results .card .facts').innerText === text", arg=before[0]
    )

    with page.expect_download() as download:
        page.click("text=Export labels")
    lines = Path(download.value.path()).read_text().splitlines()
    assert len(lines) == 1 + 36 + 6

    page.goto(f"{address}taught")
    page.click('button[aria-label="Undo answer 1"]')
    page.wait_for_load_state()
    assert page.inner_text("#taught-count") == "3"


def test_keyboard(page: Any, address: str, pairs: list[tuple[str, str]]) -> None:
    a, b = pairs[5]
    page.goto(f"{address}search?like={a}&others=1&k=90")
    ids = all_cards(page)
    page.keyboard.press("ArrowRight")  # the first card
    for _ in range(ids.index(b)):
        page.keyboard.press("ArrowRight")
    focused = "document.activeElement.closest('.card')?.dataset.id"
    assert page.evaluate(focused) == b
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("m")
    page.wait_for_selector(f"#verdict-{b} .badge.same")
    assert page.evaluate(focused) == b  # the focus stays
    other = next(key for key in ids if page.locator(f"#verdict-{key} button.different").count())
    page.focus(f'.card[data-id="{other}"] .pick')
    page.keyboard.press("n")
    page.wait_for_selector(f"#verdict-{other} .badge.different")
    with page.expect_navigation():
        page.keyboard.press("u")
    assert f"like={a}" in page.url
    assert "k=90" in page.url  # back where we were, filters included
    assert page.locator(f"#verdict-{other} .badge").count() == 0
    assert page.locator(f"#verdict-{b} .badge.same").count() == 1


def test_upload(page: Any, address: str, town: Any) -> None:
    page.goto(address)
    page.set_input_files("#image", town.sightings.files()[20])
    page.click("text=Search with this image")
    page.wait_for_selector("#results .card")
    assert page.locator("#results .card").count() == 24
    assert "not stored" in page.inner_text(".query")
    page.click("#results .card .pick")
    page.wait_for_url("**like=**")


def test_upload_that_is_no_image(chromium: Any, address: str, tmp_path: Path) -> None:
    page = chromium.new_page()
    (tmp_path / "note.txt").write_text("no image")
    page.goto(address)
    page.set_input_files("#image", tmp_path / "note.txt")
    page.click("text=Search with this image")
    page.wait_for_selector(".notice")
    assert "not an image" in page.inner_text(".notice")
    page.close()


def test_without_javascript(chromium: Any, address: str, pairs: list[tuple[str, str]]) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    page.click(".grid.small .pick")
    page.click("summary")
    page.check('input[name="camera"][value="camera-2"]')
    page.click("#filters button")
    assert "camera=camera-2" in page.url
    assert page.locator("#results .card").count() > 0
    a, b = pairs[7]
    page.goto(f"{address}search?like={a}&k=90")
    page.click(f"#verdict-{b} button.same")
    page.goto(f"{address}search?like={a}&k=90")
    assert page.locator(f"#verdict-{b} .badge.same").count() == 1
    context.close()


def test_phone(chromium: Any, address: str, pairs: list[tuple[str, str]]) -> None:
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True
    )
    page = context.new_page()
    a, _ = pairs[8]
    for path in ("", f"search?like={a}", "person?name=0001", "taught", "refit", "log"):
        page.goto(address + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    page.goto(f"{address}search?like={a}&others=1")
    box = page.locator("#results .card button.same").first.bounding_box()
    assert box["height"] >= 32
    top = page.locator("#results .card").first.bounding_box()
    assert top["y"] < 844  # the first result is on the first screen
    context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_accessibility(
    chromium: Any, address: str, pairs: list[tuple[str, str]], town: Any, width: int
) -> None:
    """Axe finds nothing serious on any page."""
    gallery = Gallery.open(town.folder)
    gallery.teach("same", *pairs[9])
    gallery.teach("different", pairs[10][0], pairs[11][1])
    context = chromium.new_context(viewport={"width": width, "height": 900}, bypass_csp=True)
    page = context.new_page()
    paths = [
        "", f"search?like={pairs[9][0]}&k=90", f"search?like={pairs[9][0]}&after=2031-01-01",
        "person?name=0001", "taught", "refit", "log", "nowhere",
    ]  # fmt: skip
    for path in paths:
        page.goto(address + path)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run()")["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        told = [(v["id"], v["nodes"][0]["html"][:200]) for v in serious]
        assert told == [], path
    context.close()


def test_a_server_killed_during_refit_leaves_the_gallery_whole(demo: Any, gallery: Gallery) -> None:
    for a, b in demo.unlabelled_pairs(gallery)[:6]:
        gallery.teach("same", a, b)
    process, address = start(demo.folder)
    with httpx.Client(base_url=address) as client:
        csrf = client.get("info.json").json()["csrf"]
        client.post("refit", data={"csrf": csrf})
        time.sleep(0.15)
    stop(process, signal.SIGKILL)
    report = check(str(demo.folder))
    assert report.clean, report.problems
    assert len(gallery.search_like(str(gallery.view.table.ids[0]), 100)) == 89
    gallery.rebuild(gallery.model)  # cleans up what was left
    assert check(str(demo.folder)).notes == []


# ---- logging in


def listen(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(pattern, line)
        if found:
            return found[1]
    raise AssertionError(f"the server ended without saying {pattern}")


def test_link_login_slow_down_expiry_logout_and_end(
    chromium: Any, demo: Any, gallery: Gallery
) -> None:
    """One server from its first link to its end, with --quiet."""
    process, address = start(demo.folder, "--quiet", "--session", "1", login=True)
    page = chromium.new_page()
    _by_link(page, process, address)
    _by_password(page, address, gallery)
    page.close()
    _ends_whatever_clients_do(process, address)


def _by_link(page: Any, process: subprocess.Popen[str], address: str) -> None:
    """Its key is in no request line and not in the address afterwards; the next link is told."""
    link = listen(process, r"(http://\S+#key=\S+)")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.split("#")[0]))
    page.goto(link)
    page.wait_for_selector("text=Who are you looking for?")
    assert not any(link.split("=")[1] in one for one in asked)
    assert page.url == address
    assert page.inner_text("header .hint").endswith("administrator")
    following = listen(process, r"(http://\S+#key=\S+)")
    page.click("#logout")
    page.wait_for_selector("#login")
    page.goto(link)
    page.wait_for_selector("text=Wrong key")
    page.goto(following)
    page.wait_for_selector("text=Who are you looking for?")
    page.click("#logout")
    page.wait_for_selector("#login")


def _by_password(page: Any, address: str, gallery: Gallery) -> None:
    from resight.gallery import users

    password = "correct horse battery"
    users.add_user(gallery.engine, "ada", "teacher", password)
    page.goto(f"{address}person?name=0001")
    for _ in range(5):
        page.fill("#name", "ada")
        page.fill("#password", "wrong")
        page.click("#login button")
        page.wait_for_selector(".notice")
    assert "Too many wrong guesses" in page.inner_text(".notice")
    page.wait_for_timeout(1200)
    page.fill("#password", password)
    page.press("#password", "Enter")
    page.wait_for_selector("text=Timeline")
    assert page.url == f"{address}person?name=0001"  # where one wanted to go
    assert page.inner_text("header .hint") == "ada, teacher"
    assert page.locator("text=Rename").count() == 1
    [session] = [c for c in page.context.cookies() if "session" in c["name"]]
    assert (session["httpOnly"], session["sameSite"]) == (True, "Strict")
    gallery.engine._ask("UPDATE credentials SET ends = ends - 61")  # a minute passes
    page.reload()
    page.wait_for_selector("#login")
    page.fill("#name", "ada")
    page.fill("#password", password)
    page.click("#login button")
    page.click("#logout")
    page.wait_for_selector("#login")
    page.go_back()
    page.wait_for_selector("#login")  # nothing was kept in the browser


def _ends_whatever_clients_do(process: subprocess.Popen[str], address: str) -> None:
    host, port = re.findall(r"//(.+):(\d+)", address)[0]
    lines = [socket.create_connection((host, int(port))) for _ in range(3)]
    lines[0].sendall(b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nx")
    lines[1].sendall(b"GET / HTTP/1.1\r\n")
    time.sleep(0.3)
    begin = time.monotonic()
    stop(process)
    assert time.monotonic() - begin < 10
    for line in lines:
        line.close()
