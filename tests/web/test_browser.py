"""The command that serves, in a real Chromium: getting in, ending, being killed."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from browser_kit import CHROMIUM, FLAGS, start, stop
from resight.gallery import Gallery
from resight.gallery.checking import check

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: run scripts/system_packages.py"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


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
    assert page.locator("summary", has_text="Rename").count() == 1
    [session] = [c for c in page.context.cookies() if "session" in c["name"]]
    assert (session["httpOnly"], session["sameSite"]) == (True, "Strict")
    gallery.engine.ask("UPDATE credentials SET ends = ends - 61")  # a minute passes
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
