"""The command line: one file per verb, imported only when that verb is asked for."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from resight._version import __version__
from resight.errors import ResightError, unknown_name

VERBS = {
    "demo": "draw synthetic cameras, learn, evaluate, report: the whole flow in a minute",
    "data": "list the known datasets; describe and check folders of images",
    "crop": "cut people out of video or frames into a folder per camera",
    "extract": "compute descriptors of many images into a feature store",
    "fit": "learn a model from labelled sightings and save it",
    "evaluate": "measure learners on a dataset or on your own folders",
    "reproduce": "measure the paper's tables from raw images",
    "report": "write the HTML report of a result",
    "gallery": "create, fill and check a gallery of sightings",
    "search": "find a person's other sightings in a gallery",
    "explain": "tell why two sightings are alike or different",
    "serve": "open the search page of a gallery",
    "doctor": "tell what this machine has and compile ahead",
}

_INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; return 0 when done, 1 when failed, 2 on wrong usage."""
    try:
        code = _main(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _main(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        print(f"resight {__version__}")
        return 0
    verb, rest = words[0], words[1:]
    if verb not in VERBS:
        print(f"error: {unknown_name('verb', verb, VERBS)}", file=sys.stderr)
        return 2
    return _run(verb, rest)


def _run(verb: str, rest: list[str]) -> int:
    app = import_module(f"resight.cli.{verb}").app
    try:
        app(args=rest, prog_name=f"resight {verb}")
    except SystemExit as stop:
        return _exit_code(stop)
    except ResightError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        print(f"error: {error.strerror or error}{where}", file=sys.stderr)
        return 1
    return 0


def _exit_code(stop: SystemExit) -> int:
    """Tell what Typer's ways to stop mean: a number, nothing, or a message to print."""
    if stop.code == _INTERRUPTED:  # Typer turns Ctrl-C into this code without a word
        print("interrupted: what was finished is kept; the same command goes on", file=sys.stderr)
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(f"error: {stop.code}", file=sys.stderr)
    return 1


def _overview() -> str:
    width = max(map(len, VERBS))
    rows = "\n".join(f"  {verb:<{width}}  {summary}" for verb, summary in VERBS.items())
    return (
        "usage: resight VERB [ARGUMENTS]   (resight VERB --help tells more)\n\n"
        f"{rows}\n\n  --version  print the version"
    )
