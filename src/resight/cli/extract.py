"""``resight extract``: compute descriptors of many images into a feature store."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from resight.cli import _common as common
from resight.cli._common import answer, count, flag, say
from resight.plans import DESCRIPTOR


def extract(
    data: common.Data,
    store: common.Store = Path("features"),
    root: common.Root = None,
    descriptor: common.Descriptor = DESCRIPTOR,
    mirror: common.Mirror = False,
    jobs: common.Jobs = None,
    cluster: common.Cluster = None,
    send_files: bool = flag(
        "--send-files", "With --cluster: send files to workers that cannot read your folders"
    ),
    json: common.Json = False,
    out: Path | None = typer.Option(None, hidden=True),  # what 0.1 called --store
) -> None:
    """Compute descriptors; stored ones are reused, so run again to resume.

    The exit code is 1 if some images could not be used.
    """
    from resight import datasets
    from resight.features.store import FeatureStore

    if send_files and cluster is None:
        raise typer.BadParameter("--send-files needs --cluster")
    workers = common.executor(jobs, cluster, send_files)
    sightings = datasets.load(data, root=root)
    folder = out or store
    start = time.perf_counter()
    with workers:
        features = FeatureStore(folder).ensure(
            sightings, descriptor, mirror=mirror, executor=workers, on_error="collect"
        )
    seconds = time.perf_counter() - start
    if features.changed:
        shown = ", ".join(features.changed[: common.SHOWN])
        images = count(len(features.changed), "image")
        say(f"recomputed {images} that changed since stored: {shown}")
    descriptors = zip(features.descriptors, features.parts, strict=True)
    document = {
        "schema": "resight.extract/1",
        "dataset": {"name": sightings.name, "sightings": len(sightings)},
        "store": str(folder),
        "fingerprint": features.fingerprint,
        "descriptors": [{"name": n, "n_features": part.shape[1]} for n, part in descriptors],
        "computed": features.computed,
        "failures": [failure._asdict() for failure in features.failures],
        "changed": list(features.changed),
        "seconds": round(seconds, 3),
    }
    answer(
        json,
        document,
        f"{int(features.usable.sum()):,} of {count(len(sightings), 'sighting')} have "
        f"{'+'.join(features.descriptors)} in {folder}: computed "
        f"{count(features.computed, 'vector')} in {seconds:.1f} s, the rest were already stored",
    )
    common.report_failures(features.failures)
