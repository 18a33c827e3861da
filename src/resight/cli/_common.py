"""Parts shared by all verbs: common options, what they open, how results are printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight._files import atomic_write
from resight._progress import log
from resight.errors import InputError
from resight.plans import LARGE, LARGE_LEARNER, LEARNER

if TYPE_CHECKING:
    from resight.datasets.sightings import Sightings
    from resight.descriptors.describing import Failure
    from resight.features.store import Features
    from resight.gallery import Gallery
    from resight.workers.executors import Executor

SHOWN = 20  # lines printed of a long list; --json has all of them


def option(
    default: Any, metavar: str, help: str, shown: str | bool = True, *names: str, **rest: Any
) -> Any:
    """Declare an option (`...`: its default stands elsewhere); `shown` describes a computed one."""
    return typer.Option(default, *names, metavar=metavar, help=help, show_default=shown, **rest)


def flag(name: str, help: str, *names: str, default: Any = False, **rest: Any) -> Any:
    """Declare an option without a value."""
    return typer.Option(default, *names, name, help=help, **rest)


_DATA = "Dataset name, folder of images, or CSV table of sightings"
_ROOT = "Folder of a dataset given by name, or base of the relative paths in a CSV table"
_PLACE = "Folder, or postgresql://user@host/db#name"
_CLUSTER = (
    "Run on a Dask cluster: address of its scheduler, tls://HOST:PORT or tcp://HOST:PORT. Anyone "
    "who can reach it can run code on its machines and on this one"
)

Data = Annotated[str, typer.Argument(help=_DATA)]
DataOrNone = Annotated[str | None, typer.Argument(help=_DATA, show_default="none, with --features")]
GalleryPlace = Annotated[str, typer.Argument(metavar="GALLERY", help=_PLACE)]
Root = Annotated[Path | None, option(..., "DIR", _ROOT, "folder of the CSV table")]
Descriptor = Annotated[str, option(..., "NAME[+NAME...]", "Descriptors, concatenated with '+'")]
_LEARNER = "kxqda uses the paper's fixed settings; kxqda:cv and auto choose theirs"
_RECIPE = f"{LEARNER}; above {LARGE:,} labelled sightings {LARGE_LEARNER}"
Learner = Annotated[str | None, option(..., "NAME", f"Learner: {_LEARNER}", _RECIPE)]
Learners = Annotated[str | None, option(..., "NAME[,NAME...]", f"Learners: {_LEARNER}", _RECIPE)]
_PARAM = "Learner parameter, such as kxqda.reg=1e-3 (repeatable)"
Params = Annotated[list[str] | None, option(..., "[LEARNER.]NAME=VALUE", _PARAM, "its defaults")]
_OWN = "Your own vectors (.npy, .csv, .mat)"
OwnVectors = Annotated[Path | None, option(..., "FILE", _OWN, "compute descriptors")]
_MIRROR = "Average each image's features with its mirror image"
Mirror = Annotated[bool, flag("--mirror", _MIRROR, default=...)]
Store = Annotated[Path, option(..., "DIR", "Feature store")]
Jobs = Annotated[int | None, option(..., "N", "Number of local processes", "one per core", min=1)]
Cluster = Annotated[str | None, option(..., "ADDRESS", _CLUSTER, "this machine")]
_PURPOSE = "Purpose of the search, kept in the gallery's log"
Purpose = Annotated[str, option(..., "TEXT", _PURPOSE, "none")]
Json = Annotated[bool, flag("--json", "Print one JSON document on standard output", default=...)]


def answer(as_json: bool, document: Any, text: str) -> None:
    """Print what was found, as one JSON document or as text, on standard output."""
    print(json.dumps(document, indent=1, allow_nan=False) if as_json else text)


def write(file: Path, text: str) -> None:
    """Write a page or an export to a file, whole or not at all."""
    with atomic_write(file, "w") as stream:
        stream.write(text)
    say(f"wrote {file}")


def say(text: str) -> None:
    """Print a message on standard error, so that output can be piped; --quiet hides it."""
    log.info(text)


def report_failures(failures: Sequence[Failure]) -> None:
    """List files that could not be used and exit with code 1 if there are any."""
    if not failures:
        return
    for failure in failures[:SHOWN]:
        log.error("skipped: %s: %s", failure.path, failure.reason)
    if len(failures) > SHOWN:
        log.error("and %s more (--json lists all)", f"{len(failures) - SHOWN:,}")
    log.error("%s could not be used", count(len(failures), "image"))
    raise typer.Exit(1)


def executor(jobs: int | None, cluster: str | None, send_files: bool = False) -> Executor:
    """Return the workers that --jobs or --cluster ask for."""
    from resight.workers import executors

    if jobs is not None and cluster is not None:
        raise typer.BadParameter("give either --jobs (this machine) or --cluster, not both")
    if cluster is None:
        return executors.local(jobs)
    return executors.cluster(cluster, send_files=send_files)


def inputs(
    data: str | None,
    root: Path | None,
    features: Path | None,
    describing: bool,
    needs: Sequence[str] = ("person", "camera"),
) -> tuple[Sightings, Features | None]:
    """Read own vectors, or the sightings to describe; `describing` options fit the latter.

    `needs` are the labels that vectors must have.
    """
    from resight import datasets
    from resight.features.vectors import load_vectors

    if features is None and data is not None:
        return datasets.load(data, root=root), None
    if features is None:
        raise InputError("give a dataset name, a folder or a CSV table, or --features FILE")
    if describing:
        raise InputError(
            "--descriptor, --mirror, --store and --cluster apply to computing descriptors; leave "
            "them out with --features"
        )
    vectors, sightings = load_vectors(features, data, needs)
    return sightings, vectors


def open_gallery(uri: str, ctx: typer.Context | None = None, cluster: str | None = None) -> Gallery:
    """Open the gallery of a command, searched by this process or until its end by a cluster."""
    from resight.gallery import Gallery
    from resight.workers import executors

    workers = None if cluster is None else executors.cluster(cluster)
    if ctx is not None and workers is not None:
        ctx.call_on_close(workers.close)
    return Gallery.open(uri, cluster=workers)


def record(gallery: Gallery, what: str, **facts: Any) -> None:
    """Write into a gallery's log what the user of this machine did."""
    from resight.gallery.log import operator

    gallery.record(operator(), what, **facts)


def given(ctx: typer.Context, *names: str) -> list[str]:
    """Return those options that the user gave, on the command line or in a configuration file."""
    sources = ((name, ctx.get_parameter_source(name)) for name in names)
    return [n for n, source in sources if source and source.name in ("COMMANDLINE", "DEFAULT_MAP")]


def count(number: int, noun: str) -> str:
    """Write a number with its noun: 1 image, 2,048 images."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
