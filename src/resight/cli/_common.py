"""What the verbs share: how an app is made and how results are printed."""

from __future__ import annotations

import json
import sys
from typing import Any

import typer


def verb(help: str) -> typer.Typer:
    """Make the Typer app of one verb; bad input is reported by `resight.cli.main`, not here."""
    return typer.Typer(
        help=help,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        no_args_is_help=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    json.dump(document, sys.stdout, indent=1, allow_nan=False)
    sys.stdout.write("\n")


def say(text: str) -> None:
    """Tell the user something beside the result: standard error, so that output can be piped."""
    print(text, file=sys.stderr)
