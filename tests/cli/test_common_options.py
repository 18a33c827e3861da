"""Options that every verb has: --verbose, --quiet, --config, and how help describes them."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from resight._progress import log, progress
from resight.cli import EXTRAS, VERBS, main
from resight.cli._commands import command
from resight.cli._common import answer, report_failures, say
from resight.datasets.synthetic import draw_cameras
from resight.descriptors.describing import Failure


def crop(
    how: str = "well",
    number: Annotated[int, typer.Option(min=1)] = 1,
    param: Annotated[list[str] | None, typer.Option()] = None,
    descriptor: str = "gog",
    dry_run: bool = False,
) -> None:
    log.debug("a detail")
    say("a message")
    if how == "bug":
        raise KeyError("oops")
    if how == "bad-files":
        report_failures([Failure(i, f"{i}.png", "damaged") for i in range(22)])
    with progress("counting", 3) as advance:
        advance(3)
    given = {"number": number, "param": param, "descriptor": descriptor, "dry_run": dry_run}
    answer(True, {"how": how, **given}, "")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the function above as `crop`; return its exit code, output and messages."""
    module = type(sys)("resight.cli.crop")
    module.crop = crop  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "resight.cli.crop", module)

    def call(*words: object) -> tuple[int, str, str]:
        code = main(["crop", *map(str, words)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_messages_by_default_details_with_verbose_nothing_with_quiet(run: Any) -> None:
    assert run()[2] == "a message\n"
    code, out, err = run("--verbose")
    assert (code, json.loads(out)["how"]) == (0, "well")
    assert err.startswith("a detail\na message\ncounting: finished in 0.0 s\n")
    assert run("-q")[2] == ""
    assert (log.level, log.handlers) == (logging.NOTSET, [])  # as it was for other programs


def test_quiet_keeps_errors(run: Any) -> None:
    code, _, err = run("--how", "bad-files", "--quiet")
    assert code == 1
    assert err.count("skipped:") == 20
    assert err.endswith("and 2 more (--json lists all)\n22 images could not be used\n")


def test_a_bug_is_one_line_and_a_traceback_with_verbose(run: Any) -> None:
    code, _, err = run("--how", "bug", "--quiet")
    assert code == 1
    assert err == (
        "error: unexpected KeyError: 'oops'. This is a bug; run again with --verbose for the "
        "traceback\n"
    )
    assert 'raise KeyError("oops")' in run("--how", "bug", "-v")[2]


def test_the_command_line_wins_over_the_file(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'number = 3\ndry-run = true\ndescriptor = ["gog", "lomo"]\n[param.kxqda]\nreg = 1e-3\n'
    )
    assert json.loads(run("--config", file, "--number", "5")[1]) == {
        "how": "well",
        "number": 5,
        "param": ["kxqda.reg=0.001"],
        "descriptor": "gog,lomo",
        "dry_run": True,
    }


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("numbr = 3", 1, "'numbr'; did you mean 'number'? Valid: descriptor, dry_run, how, number"),
        ("number = [", 1, "is not valid TOML"),
        ("number = 0", 2, "Invalid value for '--number'"),
        ("number = 'three'", 2, "Invalid value for '--number'"),
        ("config = 'other.toml'", 1, "unknown setting"),
        (b"\xff\xfe", 1, "is not UTF-8 text"),
        ("number = " + "[" * 9000, 1, "is not valid TOML"),
        ("a = 1" + " " * 20_000, 1, "the limit is"),
        ('how = "\\u202E"', 1, "direction mark"),
    ],
)
def test_bad_files_are_refused(
    run: Any, tmp_path: Path, text: str | bytes, code: int, says: str
) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    found, _, err = run("--config", file)
    assert (found, says in " ".join(err.split())) == (code, True), err
    assert "does not exist" in run("--config", tmp_path / "none.toml")[2]


def parameters() -> list[tuple[str, Any]]:
    found = []
    for name in VERBS:
        built: Any = command(name)
        for one in getattr(built, "commands", {"": built}).values():
            found += [(f"{name} {one.name}", param) for param in one.params]
    return found


def test_every_help_shows_defaults_and_has_one_style() -> None:
    for where, param in parameters():
        if getattr(param, "hidden", False):
            continue
        text = param.help
        assert text, (where, param.name)
        assert text[0].isupper(), (where, param.name)
        assert not text.endswith("."), (where, param.name)
        if not param.required and not getattr(param, "is_flag", False):
            known = param.default is not None or isinstance(param.show_default, str)
            assert known, (where, param.name)


def test_options_of_the_same_meaning_have_the_same_words() -> None:
    for name in ("json", "jobs", "cluster", "store", "root", "config", "verbose", "quiet"):
        texts = {param.help for _, param in parameters() if param.name == name}
        assert len(texts) == 1, (name, texts)


def test_short_options_have_long_forms() -> None:
    for where, param in parameters():
        assert any(word.startswith("--") for word in param.opts) or param.param_type_name == (
            "argument"
        ), (where, param.name)


@pytest.fixture(scope="module")
def cameras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(draw_cameras(tmp_path_factory.mktemp("extras") / "own", 2, seed=1).root)


@pytest.mark.parametrize(
    ("extra", "package", "words"),
    [
        ("gallery", "fastapi", "serve GALLERY"),
        ("gallery", "uvicorn", "serve GALLERY"),
        ("postgres", "psycopg", "gallery info postgresql://nobody@localhost/none"),
        ("cluster", "distributed", "extract CAMERAS --store STORE --cluster tcp://localhost:1"),
    ],
)
def test_a_missing_extra_is_named(
    cameras: Path, tmp_path: Path, extra: str, package: str, words: str
) -> None:
    assert package in EXTRAS[extra]
    places = {"CAMERAS": str(cameras), "STORE": str(tmp_path)}
    given = [places.get(word, word) for word in words.split()]
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"from resight.cli import main; sys.exit(main({given!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert f"pip install 'resight[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
