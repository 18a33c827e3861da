"""The command line: one file per verb, imported only when that verb is used."""

from __future__ import annotations

import io
import os
import sys

from resight._version import __version__
from resight.errors import ResightError, unknown_name

VERBS = {
    "demo": "run the whole workflow in a minute on synthetic people",
    "data": "list the known datasets; describe and check folders of images",
    "crop": "crop people from video or frames into one folder per camera",
    "extract": "compute descriptors of many images into a feature store",
    "network": "inspect an ONNX network of your own",
    "fit": "train a model on labelled sightings and save it",
    "evaluate": "evaluate learners on a dataset or on your own folders",
    "reproduce": "reproduce the paper's tables from raw images",
    "report": "write the HTML report of a result; show the card of a model",
    "gallery": "create and manage a gallery of sightings",
    "search": "find a person's other sightings in a gallery",
    "explain": "explain why two sightings look alike or different",
    "serve": "serve the web page and JSON API of a gallery",
    "doctor": "check the installation; precompile",
}

# Packages that only some commands need, by the extra that installs them.
EXTRAS = {
    "gallery": ("fastapi", "uvicorn", "python_multipart"),
    "convert": ("lancedb", "pyarrow"),
    "postgres": ("psycopg", "pgvector"),
    "cluster": ("distributed",),
    "network": ("onnxruntime",),
}

_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_COMPLETION = ("--install-completion", "--show-completion")


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; return 0 on success, 1 on failure, 2 on wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that this terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _main(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _main(words: list[str]) -> int:
    if "_RESIGHT_COMPLETE" in os.environ or (words and words[0] in _COMPLETION):
        from resight.cli._commands import complete

        return complete(words)
    if not words or words[0] in ("-h", "--help"):
        print(_overview())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        print(f"resight {__version__}")
        return 0
    if any("\0" in word for word in words):  # no file system has such names
        print("error: an argument contains a NUL character; leave it out", file=sys.stderr)
        return 2
    verb, rest = words[0], words[1:]
    if verb not in VERBS:
        print(f"error: {unknown_name('verb', verb, VERBS)}", file=sys.stderr)
        return 2
    return _run(verb, rest)


def _run(verb: str, rest: list[str]) -> int:
    import logging
    import time
    import warnings

    start = time.perf_counter()
    from resight.cli._commands import command

    run = command(verb)
    log, handler = logging.getLogger("resight"), logging.StreamHandler(sys.stderr)
    log.addHandler(handler)
    log.setLevel(logging.INFO)  # --verbose and --quiet change it
    try:
        with warnings.catch_warnings():
            # What the package warns of in Python is a message here, without file and line.
            warnings.showwarning = lambda message, *_, **__: log.warning("warning: %s", message)
            run(args=rest, prog_name=f"resight {verb}")
    except SystemExit as stop:  # Typer's way to stop: a number, nothing, or a message to print
        if stop.code == _INTERRUPTED:  # Typer turns Ctrl-C into this code without a message
            print("interrupted; run the same command again to resume", file=sys.stderr)
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(f"error: {stop.code}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except Exception as error:
        print(f"error: {_in_words(error)}", file=sys.stderr)
        log.debug("traceback:", exc_info=True)
        return 1
    finally:
        log.debug("finished in %.1f s", time.perf_counter() - start)
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    return 0


def _in_words(error: Exception) -> str:
    if isinstance(error, ResightError):
        return str(error)
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror or error}{where}"
    package = (getattr(error, "name", None) or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if isinstance(error, ImportError) and package in packages:
            return f"this needs {package}, which is missing: pip install 'resight[{extra}]'"
    bug = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"unexpected {bug}. This is a bug; run again with --verbose for the traceback"


def _overview() -> str:
    width = max(map(len, VERBS))
    rows = "\n".join(f"  {verb:<{width}}  {summary}" for verb, summary in VERBS.items())
    return (
        "usage: resight VERB [ARGUMENTS]   (details: resight VERB --help)\n\n"
        f"{rows}\n\n"
        "  --version                     print the version\n"
        "  --install-completion [SHELL]  install completion for bash, zsh, fish or PowerShell\n"
        "  --show-completion [SHELL]     print the completion script\n\n"
        "Every verb takes -v/--verbose and -q/--quiet."
    )
