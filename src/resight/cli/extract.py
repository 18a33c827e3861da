"""``resight extract``: compute descriptors of many images into a feature store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli._common import (
    SHOWN,
    Cluster,
    ConfigurableCommand,
    Data,
    Descriptor,
    Jobs,
    Json,
    Mirror,
    Root,
    Store,
    count,
    one_place,
    print_json,
    report_failures,
    say,
    verb,
)

if TYPE_CHECKING:
    from resight.datasets.sightings import Sightings
    from resight.features.store import Features

SCHEMA = "resight.extract/1"

app = verb("Compute descriptors of many images into a feature store.")


@app.command(cls=ConfigurableCommand)
def extract(
    data: Data,
    store: Store = Path("features"),
    root: Root = None,
    descriptor: Descriptor = "gog+lomo-dagger",
    mirror: Mirror = False,
    jobs: Jobs = None,
    cluster: Cluster = None,
    send_files: Annotated[
        bool,
        typer.Option(
            "--send-files", help="With --cluster: send the files, for workers without your folders"
        ),
    ] = False,
    json: Json = False,
    out: Annotated[Path | None, typer.Option(hidden=True)] = None,  # what 0.1 called --store
) -> None:
    """Compute descriptors; stored ones are reused, so run again to resume.

    The exit code is 1 if some images could not be used.
    """
    from resight import datasets
    from resight.features.store import FeatureStore
    from resight.workers import executors

    if send_files and cluster is None:
        raise typer.BadParameter("--send-files needs --cluster")
    one_place(jobs, cluster)
    sightings = datasets.load(data, root=root)
    folder = out or store
    start = time.perf_counter()
    workers = (
        executors.local(jobs)
        if cluster is None
        else executors.cluster(cluster, send_files=send_files)
    )
    with workers:
        features = FeatureStore(folder).ensure(
            sightings, descriptor, mirror=mirror, executor=workers, on_error="collect"
        )
    _report(sightings, features, folder, time.perf_counter() - start, json)
    report_failures("skipped", [(f.path, f.reason) for f in features.failures])


def _report(
    sightings: Sightings, features: Features, store: Path, seconds: float, as_json: bool
) -> None:
    if features.changed:
        shown = ", ".join(features.changed[:SHOWN])
        images = count(len(features.changed), "image")
        say(f"recomputed {images} that changed since stored: {shown}")
    if as_json:
        print_json(_document(sightings, features, store, seconds))
        return
    print(
        f"{int(features.usable.sum()):,} of {count(len(sightings), 'sighting')} have "
        f"{'+'.join(features.descriptors)} in {store}: computed "
        f"{count(features.computed, 'vector')} in {seconds:.1f} s, the rest were already stored"
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
