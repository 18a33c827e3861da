"""How verbs become commands: options that all of them have, settings from a file, completion."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from resight._progress import log
from resight.cli import VERBS
from resight.cli._common import flag, option
from resight.errors import InputError, unknown_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIGURABLE = ("crop", "extract", "fit", "evaluate", "reproduce", "add", "search", "serve")
_SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_NAMES: dict[str, Any] = {"prog_name": "resight", "complete_var": "_RESIGHT_COMPLETE"}
_LARGEST = 2**14  # bytes of settings; keys of many parts take a time that grows with their square
# Keys that version 0.1 used in files.
_OLD_KEYS = {"dataset": "data", "descriptors": "descriptor", "find": "detector"}
_OLD_KEYS |= {"learners": "learner", "params": "param"}


def command(verb: str) -> Any:
    """Build a verb: the function of its name in its module, or a group of its COMMANDS.

    Bad input is reported by `resight.cli.main`, not here.
    """
    module = import_module(f"resight.cli.{verb}")
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
    app = typer.Typer(
        help=f"{VERBS[verb][0].upper()}{VERBS[verb][1:]}.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=settings,
    )
    if hasattr(module, "COMMANDS"):
        app.callback()(lambda: None)  # a group, even of one command
    for function in getattr(module, "COMMANDS", None) or [getattr(module, verb)]:
        app.command(function.__name__.rstrip("_"))(function)
    built: Any = typer.main.get_command(app)
    common = typer.Typer(add_completion=False)
    common.command()(_options)
    for one in getattr(built, "commands", {"": built}).values():
        for param in one.params:
            if param.param_type_name == "argument":
                param.metavar = param.metavar or param.name.upper()
        config, *others = typer.main.get_command(common).params
        one.params += [config, *others] if one.name in CONFIGURABLE else others
    return built


def _read_config(ctx: typer.Context, file: Path | None) -> None:
    """Take settings from a TOML file: keys are the long names of options and arguments."""
    if file is None or ctx.resilient_parsing:
        return
    from resight.validation import read_text

    text = read_text(file, _LARGEST)
    try:
        settings = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not valid TOML: {error}") from error
    # Options that Python reserves the name of, as --class, end in "_" there.
    known: dict[str, Any] = {
        p.name.rstrip("_"): p
        for p in ctx.command.params
        if p.name and p.expose_value and not getattr(p, "hidden", False)
    }
    chosen = {}
    for key, value in settings.items():
        name = key.replace("-", "_")
        name = name if name in known else _OLD_KEYS.get(name, name)
        if name not in known:
            raise unknown_name(f"setting in {file}", key, known)
        several = getattr(known[name], "multiple", False) or known[name].nargs == -1
        chosen[known[name].name] = _as_given(value, several)
    ctx.default_map = chosen


def _level(level: int) -> dict[str, Any]:
    return {"callback": lambda given: log.setLevel(level) if given else None, "expose_value": False}


_FILE = "TOML file with these settings; options on the command line win"
_VERBOSE = "Show what is loaded, timings, and tracebacks"
_QUIET = "Show errors only, no progress or messages"
_EAGER: dict[str, Any] = {"callback": _read_config, "is_eager": True, "expose_value": False}


def _options(
    config: Path | None = option(None, "FILE", _FILE, "none", **_EAGER),
    verbose: bool = flag("--verbose", _VERBOSE, "-v", **_level(logging.DEBUG)),
    quiet: bool = flag("--quiet", _QUIET, "-q", **_level(logging.ERROR)),
) -> None:
    """Take what all commands take; --config only those with many settings."""


def _as_given(value: Any, multiple: bool) -> Any:
    """Turn a TOML value into what the option takes on the command line.

    >>> _as_given({"kxqda": {"reg": 0.001}}, True), _as_given(["gog", "lomo"], False)
    (['kxqda.reg=0.001'], 'gog,lomo')
    """
    from resight.validation import MAX_PATH, check_name

    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            check_name(text, "setting", MAX_PATH)
    if isinstance(value, dict):
        return list(_assignments(value))
    if isinstance(value, list) and not multiple:
        return ",".join(map(str, value))
    return [value] if multiple and not isinstance(value, list) else value


def _assignments(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _assignments(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}={json.dumps(value)}"


# ---- shell completion of verbs and options, by Typer's own machinery


class _Verbs(TyperGroup):
    """All verbs as one group; a verb's module is imported when it is looked at."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return command(cmd_name) if cmd_name in VERBS else None


def complete(words: list[str]) -> int:
    """Answer a shell that asks for completions, or install or show its script."""
    from typer.completion import completion_init, get_completion_script, install

    if not words or words[0] not in ("--install-completion", "--show-completion"):
        completion_init()
        _Verbs(name="resight").main(args=words, **_NAMES)
        return 0
    shell = words[1] if len(words) > 1 else Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        print(f"error: {unknown_name('shell', shell, _SHELLS)}", file=sys.stderr)
        return 2
    if words[0] == "--show-completion":
        print(get_completion_script(shell=shell, **_NAMES))
    else:
        shell, path = install(shell=shell, **_NAMES)
        print(f"installed completion for {shell} in {path}; open a new terminal to use it")
    return 0
