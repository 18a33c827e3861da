"""Progress: bars on terminals (one inside another is drawn below it), lines elsewhere."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator

import pytest

from resight import _progress
from resight._progress import log, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def level() -> Iterator[None]:
    """Leave the logger as it was."""
    yield
    log.setLevel(logging.NOTSET)


def test_nothing_is_printed_unless_logging_is_set_up(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading", 3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("level")
def test_lines_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log.setLevel(logging.INFO)
    with progress("describing with gog", 2048) as advance:
        advance(640)
    assert caplog.messages == []  # finished within ten seconds
    monkeypatch.setattr(_progress, "SECONDS_BETWEEN_LINES", 0.0)
    with progress("describing with gog", 2048) as advance:
        for _ in range(2048):
            advance(1)
    assert caplog.messages[30] == "describing with gog: 651 of 2,048 (31%)"
    assert 90 < len(caplog.messages) <= 100
    caplog.clear()
    with progress("frames", None) as advance:
        advance(1500)
    assert caplog.messages == ["frames: 1,500"]


@pytest.mark.usefixtures("level")
def test_quiet_hides_lines_and_bars(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_progress, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    log.setLevel(logging.ERROR)
    with progress("reading", 3) as advance:
        advance(3)
    assert (caplog.messages, screen.getvalue()) == ([], "")


def test_bars_inside_each_other_are_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress("folds", 2) as outer:
        with progress("LMNN", 5):
            pass
        outer(1)
        with progress("ITML", 7):
            pass
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert re.search(r"folds .*0/2.*\nLMNN .*0/5", drawn)
    assert re.search(r"folds .*1/2.*\nITML .*0/7", drawn)
    with progress("again", 1) as advance:  # the first display has ended
        advance(1)
    assert "again" in screen.getvalue()
