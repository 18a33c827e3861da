"""The command line as a whole: verbs, exit codes, and how failures are told."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import resight
from resight.cli import VERBS, main
from resight.cli._common import answer
from resight.errors import InputError, StoreError


def failing(how: str) -> None:
    failures = {
        "input": InputError("a bad thing; do this"),
        "store": StoreError("a damaged file"),
        "file": FileNotFoundError(2, "No such file or directory", "photo.png"),
        "disk": OSError(28, "No space left on device"),
        "interrupt": KeyboardInterrupt(),
        "message": SystemExit("told at the end"),
        "code": SystemExit(3),
        "done": SystemExit(None),
    }
    if how in failures:
        raise failures[how]
    answer(True, {"how": how}, "")


@pytest.fixture
def demo_fails(monkeypatch):
    """Puts the failing verb in the place of `demo`."""
    module = types.ModuleType("resight.cli.demo")
    module.demo = failing
    monkeypatch.setitem(sys.modules, "resight.cli.demo", module)


@pytest.mark.usefixtures("demo_fails")
@pytest.mark.parametrize(
    ("how", "code", "told"),
    [
        ("input", 1, "error: a bad thing; do this\n"),
        ("store", 1, "error: a damaged file\n"),
        ("file", 1, "error: No such file or directory (photo.png)\n"),
        ("disk", 1, "error: No space left on device\n"),
        ("interrupt", 130, "interrupted; run the same command again to resume\n"),
        ("message", 1, "error: told at the end\n"),
        ("code", 3, ""),
        ("done", 0, ""),
        ("well", 0, ""),
    ],
)
def test_failures_are_told_in_one_line_with_their_exit_code(capsys, how, code, told):
    assert main(["demo", how]) == code
    captured = capsys.readouterr()
    assert captured.err == told
    assert captured.out == ('{\n "how": "well"\n}\n' if how == "well" else "")


@pytest.mark.usefixtures("demo_fails")
@pytest.mark.parametrize("words", [["demo"], ["demo", "well", "--nonsense"], ["demo", "a", "b"]])
def test_wrong_usage_of_a_verb(capsys, words):
    assert main(words) == 2
    assert "resight demo" in capsys.readouterr().err


def test_unknown_verbs_name_the_nearest(capsys):
    assert main(["evalaute"]) == 2
    assert "unknown verb 'evalaute'; did you mean 'evaluate'?" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_verb(capsys, flag):
    assert main([flag]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in VERBS)


def test_no_verb_is_wrong_usage_and_shows_the_help(capsys):
    assert main([]) == 2
    assert "usage: resight VERB" in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version(capsys, flag):
    assert main([flag]) == 0
    assert capsys.readouterr().out == f"resight {resight.__version__}\n"


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_help(capsys, name):
    assert main([name, "--help"]) == 0
    assert f"resight {name}" in capsys.readouterr().out


def test_the_installed_command_gives_its_exit_code_to_the_shell():
    done = subprocess.run(
        [sys.executable, "-m", "resight", "evalaute"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown verb")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end differently there")
def test_a_reader_that_goes_away_is_not_an_error_message():
    command = f"{sys.executable} -m resight --help | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("usage: resight")
    assert "Traceback" not in done.stderr
