"""Shell completion of verbs and options, by Typer's own machinery."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from typer.completion import completion_init, get_completion_script, install
from typer.core import TyperGroup

from resight.cli import VERBS
from resight.cli._common import command
from resight.errors import unknown_name

_SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_NAMES: dict[str, Any] = {"prog_name": "resight", "complete_var": "_RESIGHT_COMPLETE"}


class _Verbs(TyperGroup):
    """All verbs as one group; a verb's module is imported when it is looked at."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        return command(import_module(f"resight.cli.{cmd_name}").app)


def run(words: list[str]) -> int:
    """Answer a shell that asks for completions, or install or show its script."""
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
