"""``resight gallery``: create and manage a gallery of sightings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli import _common as common
from resight.cli import _doors as doors
from resight.cli._common import Json, answer, count, flag, open_gallery, option, record

if TYPE_CHECKING:
    from resight.gallery.forgetting import Forgotten

_Model = Annotated[Path, option(..., "DIR", "Model folder, as written by `resight fit`")]
_FOLDER = {"exists": True, "file_okay": False}
_FORGET = "resight.gallery-forget/1"
_OF_BACKUPS = (
    "`forget` and `retain` do not reach backups: delete backups that contain erased people, and "
    "erase those people again after a restore"
)


def create(
    place: common.GalleryPlace,
    model: _Model,
    retention: float | None = option(None, "DAYS", "Remove sightings older than this", "keep all"),
    descriptors: bool = typer.Option(
        True, help="Store descriptors; without them a new model recomputes them from the images"
    ),
    json: Json = False,
) -> None:
    """Create an empty gallery that searches with a model."""
    from resight.gallery import Gallery
    from resight.gallery.manifest import DESCRIPTORS
    from resight.models.model import Model

    stored = DESCRIPTORS if descriptors else "none"
    gallery = Gallery.create(place, Model.load(model), retention_days=retention, descriptors=stored)
    document = {"schema": "resight.gallery-info/1", **gallery.info()}
    answer(json, document, f"created {place}. Next: resight gallery add {place} IMAGES")


def add(
    ctx: typer.Context,
    place: common.GalleryPlace,
    data: common.DataOrNone = None,
    root: common.Root = None,
    camera: str | None = option(
        None, "NAME", "Camera of all these images", "from folders or table"
    ),
    features: common.OwnVectors = None,
    unlabelled: bool = flag("--unlabelled", "Ignore person labels"),
    store: Path | None = option(
        None, "DIR", "Feature store", "the folder features, if it exists", **_FOLDER
    ),
    jobs: common.Jobs = None,
    cluster: common.Cluster = None,
    json: Json = False,
) -> None:
    """Add sightings; existing sightings are skipped; run again to resume.

    With --features the gallery's model must have been fitted on such vectors; sightings whose image
    is not there are shown by a placeholder.
    """
    import numpy as np

    from resight._progress import progress
    from resight.datasets.folders import of_one_camera
    from resight.features.store import FeatureStore

    workers = common.executor(jobs, cluster)
    path, vectors = Path(data or ""), None
    if camera is not None and features is None and path.suffix != ".csv" and data and path.exists():
        sightings = of_one_camera(path, camera)
    else:
        describing, needs = common.given(ctx, "store", "cluster"), () if camera else ("camera",)
        sightings, vectors = common.inputs(data, root, features, bool(describing), needs)
    if camera is not None:
        sightings = replace(sightings, cameras=np.full(len(sightings), camera))
    if unlabelled:
        sightings = replace(sightings, persons=np.full(len(sightings), ""))
    if store is None and Path("features").is_dir():
        store = Path("features")
    gallery = open_gallery(place)
    with workers, progress("adding", len(sightings)) as advance:
        result = gallery.add(
            sightings,
            described=None if vectors is None else gallery.own_vectors(vectors.features),
            store=None if store is None else FeatureStore(store),
            on_batch=lambda ids: advance(len(ids)),
            executor=workers,
            imageless=vectors is not None,
        )
    record(gallery, "add", added=len(result.added))
    document = {
        "schema": "resight.gallery-add/1",
        "added": len(result.added),
        "already": len(result.already),
        "sightings": len(gallery),
        "described": result.described,
        "without_image": result.imageless,
        "failures": [failure._asdict() for failure in result.failures],
    }
    answer(
        json,
        document,
        f"added {count(len(result.added), 'sighting')}, skipped {len(result.already):,} existing "
        f"and {len(result.failures):,} unreadable; the gallery now has {len(gallery):,}. "
        f"Next: resight serve {place}",
    )
    common.report_failures(result.failures)


def remove(
    place: common.GalleryPlace,
    ids: list[str] = typer.Argument(help="Ids of sightings, as printed by search"),
) -> None:
    """Remove sightings by id (to erase a person and verify it, use `forget`)."""
    gallery = open_gallery(place)
    removed = gallery.remove(ids)
    record(gallery, "remove", removed=removed)
    print(f"removed {count(removed, 'sighting')}; {len(gallery):,} left")


def info(place: common.GalleryPlace, json: Json = False) -> None:
    """Show what a gallery contains."""
    from resight.times import show

    facts: dict[str, Any] = open_gallery(place).info()
    written: dict[str, Callable[[Any], str]] = {
        "cameras": lambda found: ", ".join(f"{camera} ({n})" for camera, n in found.items()),
        "times": lambda found: " to ".join(map(show, found)),
        "model_since": show,
        "models": lambda found: "; ".join(map(_told, found)),
        "bytes_per_sighting": lambda found: ", ".join(f"{k} {n:,.0f}" for k, n in found.items()),
    }
    lines = []
    for name, value in facts.items():
        text = "" if value is None else written.get(name, str)(value)
        lines.append(f"{name.replace('_', ' '):<15} {text or '-'}")
    answer(json, {"schema": "resight.gallery-info/1", **facts}, "\n".join(lines))


def _told(model: dict[str, Any]) -> str:
    """Say of a model in the history what is known of it."""
    told = f"{model['model'][:12]} ({model['origin']}, {model['state']}"
    if "after" in model:
        told += f", rank 1 {model['after']:.1f}% instead of {model['before']:.1f}%"
        told += f" by {model['people']} held-out people"
    return f"{told})"


def check(place: common.GalleryPlace, json: Json = False) -> None:
    """Verify everything in a gallery; exit code 1 if something is damaged."""
    from resight.gallery.checking import check as check_gallery

    report = check_gallery(place)
    lines = [f"damaged: {text}" for text in report.problems]
    lines += [f"note: {text}" for text in report.notes]
    if report.recall is not None:
        lines.append(f"approximate index: finds {100 * report.recall:.1f}% of the true 10 nearest")
    found = "no damage found" if report.clean else "DAMAGED"
    lines.append(f"{count(report.sightings, 'sighting')}: {found}")
    document = {"schema": "resight.gallery-check/1", "clean": report.clean, **asdict(report)}
    answer(json, document, "\n".join(lines))
    if not report.clean:
        raise typer.Exit(1)


def rebuild(place: common.GalleryPlace, model: _Model) -> None:
    """Switch to another model: recompute all embeddings from the stored descriptors.

    Run again to resume; until it has finished, searches use the old model.
    """
    from resight.models.model import Model

    gallery = open_gallery(place)
    new = Model.load(model)
    _with_progress("embedding", partial(gallery.rebuild, new))
    record(gallery, "rebuild")
    print(f"{place} with {count(len(gallery), 'sighting')} now uses {model}")


def export(
    place: common.GalleryPlace,
    form: str = option(
        "csv", "FORMAT", "Format: csv (labels), answers.csv, json or coco", True, "--format"
    ),
    out: Path | None = option(None, "FILE", "Write to a file", "print"),
    images: Path | None = option(None, "DIR", "With coco: write the crops there", "none"),
    person: str = option("", "NAME", "Only this person", "everybody"),
) -> None:
    """Export labels and answers."""
    from resight.gallery.exporting import export as exported

    gallery = open_gallery(place)
    text = exported(gallery, form, person, images)  # type: ignore[arg-type]
    record(gallery, "export labels")
    if out is None:
        print(text, end="")
    else:
        common.write(out, text)


def backup(
    place: common.GalleryPlace, file: Path = typer.Argument(help="Backup file; it must not exist")
) -> None:
    """Back up a gallery to one file: a consistent copy, even while the gallery is in use."""
    from resight.gallery.copying import backup as write

    n = _with_progress("copying", partial(write, place, file))
    record(open_gallery(place), "backup", sightings=n)
    print(f"backed up {count(n, 'sighting')} to {file}. {_OF_BACKUPS}")


def restore(
    file: Annotated[Path, typer.Argument(help="Backup file, as written by `backup`")],
    place: common.GalleryPlace,
) -> None:
    """Create a gallery from a backup, in a folder or in PostgreSQL."""
    from resight.gallery.copying import restore as read

    n = _with_progress("copying", partial(read, file, place))
    record(open_gallery(place), "restore", sightings=n)
    print(f"restored {count(n, 'sighting')} to {place}. {_OF_BACKUPS}")


def convert(
    old: Annotated[str, typer.Argument(help="Gallery of 0.1: folder, s3://..., gs:// or az://")],
    place: common.GalleryPlace,
) -> None:
    """Create a gallery from one that version 0.1 wrote (LanceDB), which stays unchanged."""
    from resight.gallery.copying import convert as read

    n = _with_progress("converting", partial(read, old, place))
    print(
        f"converted {count(n, 'sighting')} to {place}. Check it, then delete {old}: people erased "
        "from the new gallery are still in the old one"
    )


def _with_progress(words: str, work: Callable[..., Any]) -> Any:
    """Show the progress of work that reports, by `on_step`, the share that is finished."""
    from resight._progress import progress

    done = [0]
    with progress(words, 100) as advance:

        def on_step(share: float) -> None:
            done.append(int(100 * share))
            advance(done[-1] - done[-2])

        return work(on_step=on_step)


def forget(
    place: common.GalleryPlace,
    person: str = typer.Argument("", help="Label of the person", show_default="none"),
    resume: bool = flag("--resume", "Finish an interrupted erasure"),
    json: Json = False,
) -> None:
    """Erase a person: sightings, crops, embeddings and labels; then verify."""
    from resight.gallery import forgetting

    if bool(person) == resume:
        raise typer.BadParameter("give a person, or --resume to finish an interrupted erasure")
    gallery = open_gallery(place)
    done = forgetting.resume(gallery) if resume else [forgetting.forget(gallery, person)]
    documents = [{"schema": _FORGET, **asdict(one)} for one in done]
    document = {"schema": _FORGET, "finished": documents} if resume else documents[0]
    answer(json, document, "\n".join(map(_forgotten, done)) or "no interrupted erasure found")


def _forgotten(done: Forgotten) -> str:
    who = repr(done.person) if done.person else "old sightings"
    said = (
        f"erased {who}: {done.sightings} sightings, {done.labels} labels, {done.searches} log "
        f"entries. Checked {done.checked}: nothing is left. This does not touch copies elsewhere: "
        "backups, original images, models saved outside the gallery"
    )
    back = "the model had been trained with this person: went back to an earlier model"
    return "\n".join(filter(None, (said, done.limits, back if done.models_replaced else "")))


def retain(
    place: common.GalleryPlace,
    days: float | None = typer.Argument(
        None, help="Remove sightings older than this", show_default="keep all"
    ),
) -> None:
    """Set how many days sightings are kept and remove older ones now."""
    from resight.gallery.forgetting import expire

    gallery = open_gallery(place)
    gallery.retain(days)
    record(gallery, "retain", days=days)
    removed = expire(gallery)
    kept = "without limit" if days is None else f"for {days:g} days"
    print(f"sightings are kept {kept}; removed {removed:,}, {len(gallery):,} left")


_OF_DOORS = (doors.users, doors.log, doors.require)
_COPYING = (export, backup, restore, convert)
COMMANDS = (create, add, remove, info, check, rebuild, *_COPYING, forget, retain, *_OF_DOORS)
