"""Bars are drawn on terminals only; one inside another stands below it."""

from __future__ import annotations

import io
import re

import pytest

from resight._progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading", 3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


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
