"""Parts shared by all verbs: how an app is built, common options, and how results are printed."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from resight._progress import log

SHOWN = 20  # lines printed of a long list; --json has all of them

Data = Annotated[
    str, typer.Argument(help="Dataset name, folder of images, or CSV table of sightings")
]
Root = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of a dataset given by name, or base of the relative paths in a CSV table",
        show_default="folder of the CSV table",
    ),
]
GalleryPlace = Annotated[
    str,
    typer.Argument(metavar="GALLERY", help="Folder, s3://... or postgresql://user@host/db#name"),
]
Descriptor = Annotated[
    str, typer.Option(metavar="NAME[+NAME...]", help="Descriptors, concatenated with '+'")
]
Mirror = Annotated[
    bool, typer.Option("--mirror", help="Average the features of each image and its mirror image")
]
Store = Annotated[Path, typer.Option(metavar="DIR", help="Feature store")]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Number of local processes", show_default="one per core"),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on a Dask cluster: address of its scheduler, tcp://HOST:PORT",
        show_default="this machine",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output")]


class Command(TyperCommand):
    """A command with the options that every command has."""

    def __init__(self, *args: Any, params: list[Any], **rest: Any) -> None:
        super().__init__(*args, params=params + _options(_verbosity), **rest)


class ConfigurableCommand(TyperCommand):
    """A command whose settings may also come from a TOML file; the command line wins."""

    def __init__(self, *args: Any, params: list[Any], **rest: Any) -> None:
        super().__init__(*args, params=params + _options(_config) + _options(_verbosity), **rest)


class Verb(typer.Typer):
    """The app of one verb."""

    def command(self, name: str | None = None, **rest: Any) -> Callable[..., Any]:
        """Register a function as a command that takes --verbose and --quiet."""
        return super().command(name, **{"cls": Command, **rest})


def verb(help: str) -> Verb:
    """Build the Typer app of one verb; bad input is reported by `resight.cli.main`, not here."""
    return Verb(
        help=help,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        no_args_is_help=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    json.dump(document, sys.stdout, indent=1, allow_nan=False)
    sys.stdout.write("\n")


def say(text: str) -> None:
    """Print a message on standard error, so that output can be piped; --quiet hides it."""
    log.info(text)


def report_failures(what: str, failures: Sequence[tuple[str, str]]) -> None:
    """List files that could not be used and exit with code 1 if there are any."""
    for path, reason in failures[:SHOWN]:
        log.error("%s: %s: %s", what, path, reason)
    if len(failures) > SHOWN:
        log.error("and %s more (--json lists all)", f"{len(failures) - SHOWN:,}")
    if failures:
        log.error("%s could not be used", count(len(failures), "image"))
        raise typer.Exit(1)


def one_place(jobs: int | None, cluster: str | None) -> None:
    """Refuse --jobs together with --cluster."""
    if jobs is not None and cluster is not None:
        raise typer.BadParameter("give either --jobs (this machine) or --cluster, not both")


def count(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> count(1, "image"), count(2048, "image")
    ('1 image', '2,048 images')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _set_level(level: int) -> Callable[[bool], None]:
    def set_level(given: bool) -> None:
        if given:
            log.setLevel(level)

    return set_level


def _verbosity(
    verbose: Annotated[
        bool,
        typer.Option(
            "-v",
            "--verbose",
            help="Show what is loaded and how long it takes, and the traceback of a bug",
            callback=_set_level(logging.DEBUG),
            expose_value=False,
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "-q",
            "--quiet",
            help="Show errors only, no progress or messages",
            callback=_set_level(logging.ERROR),
            expose_value=False,
        ),
    ] = False,
) -> None: ...


def _read_config(ctx: typer.Context, file: Path | None) -> None:
    if file is not None and not ctx.resilient_parsing:
        from resight.cli._config import read_config

        ctx.default_map = read_config(file, ctx.command.params)


def _config(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with these settings; options on the command line win",
            show_default="none",
            callback=_read_config,
            is_eager=True,
            expose_value=False,
        ),
    ] = None,
) -> None: ...


def _options(function: Callable[..., None]) -> list[Any]:
    """Return the parameters that Typer makes of a function."""
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return typer.main.get_command(app).params
