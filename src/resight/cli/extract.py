"""``resight extract``: descriptors of many images into a feature store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli._common import print_json, say, verb

if TYPE_CHECKING:
    from resight.datasets.sightings import Sightings
    from resight.features.store import Features

SCHEMA = "resight.extract/1"
_SHOWN = 20

app = verb("Compute descriptors of many images into a feature store; goes on where it stopped.")


@app.command()
def extract(
    data: Annotated[
        str, typer.Argument(help="a dataset's name, a folder of images or a CSV of sightings")
    ],
    store: Annotated[Path, typer.Option(help="feature store")] = Path("features"),
    out: Annotated[Path | None, typer.Option(help="old name of --store", hidden=True)] = None,
    root: Annotated[Path | None, typer.Option(help="where the named dataset lies")] = None,
    descriptor: Annotated[
        str, typer.Option(help="lomo, lomo-dagger, gog, whos-star, whos-dagger; several with +")
    ] = "gog+lomo-dagger",
    mirror: Annotated[
        bool, typer.Option("--mirror", help="average over each image and its mirror image")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="local processes; one per core if not given")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, tcp://HOST:PORT")
    ] = None,
    send_files: Annotated[
        bool,
        typer.Option(
            "--send-files", help="with --cluster: send file contents, where folders are not shared"
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Compute descriptors of many images; exit code 1 if some of them cannot be used."""
    from resight import datasets
    from resight.features.store import FeatureStore
    from resight.workers import executors

    if send_files and cluster is None:
        raise typer.BadParameter("--send-files is about workers elsewhere; give --cluster too")
    if jobs is not None and cluster is not None:
        raise typer.BadParameter("give --jobs (this machine) or --cluster, not both")
    sightings = datasets.load(data, root=root)
    store = out or store
    start = time.perf_counter()
    workers = (
        executors.local(jobs)
        if cluster is None
        else executors.cluster(cluster, send_files=send_files)
    )
    with workers:
        features = FeatureStore(store).ensure(
            sightings, descriptor, mirror=mirror, executor=workers, on_error="collect"
        )
    _report(sightings, features, store, time.perf_counter() - start, json)
    if features.failures:
        raise typer.Exit(1)


def _report(
    sightings: Sightings, features: Features, store: Path, seconds: float, as_json: bool
) -> None:
    for failure in features.failures[:_SHOWN]:
        say(f"cannot be used: {failure.path}: {failure.reason}")
    if len(features.failures) > _SHOWN:
        say(f"and {len(features.failures) - _SHOWN} more (all of them with --json)")
    if features.changed:
        shown = ", ".join(features.changed[:_SHOWN])
        say(f"changed since they were stored, computed anew: {len(features.changed)}: {shown}")
    if as_json:
        print_json(_document(sightings, features, store, seconds))
        return
    usable = int(features.usable.sum())
    print(
        f"{usable} of {len(sightings)} sightings have {'+'.join(features.descriptors)} in {store}: "
        f"{features.computed} vectors computed in {seconds:.1f} s, the others were there"
    )


def _document(
    sightings: Sightings, features: Features, store: Path, seconds: float
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "dataset": {"name": sightings.name, "sightings": len(sightings)},
        "store": str(store),
        "fingerprint": features.fingerprint,
        "descriptors": [
            {"name": name, "n_features": part.shape[1]}
            for name, part in zip(features.descriptors, features.parts, strict=True)
        ],
        "computed": features.computed,
        "failures": [failure._asdict() for failure in features.failures],
        "changed": list(features.changed),
        "seconds": round(seconds, 3),
    }
