"""``resight gallery``: create, fill, check and clean a gallery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli._common import print_json, say, verb

if TYPE_CHECKING:
    from resight.datasets.sightings import Sightings
    from resight.gallery import Added
    from resight.gallery.forgetting import Forgotten

app = verb("Create, fill, check and clean a gallery of sightings.")

_Place = Annotated[str, typer.Argument(metavar="GALLERY", help="a folder or postgresql://...#name")]
_Json = Annotated[bool, typer.Option("--json", help="print one JSON document")]
_Root = Annotated[Path | None, typer.Option(help="where the named dataset lies")]
_Camera = Annotated[
    str | None, typer.Option(help="the camera of all of these images, whatever their folders say")
]
_Unlabelled = Annotated[
    bool, typer.Option("--unlabelled", help="do not take over who is who from folders or table")
]
_Model = Annotated[Path, typer.Option(help="model folder, as `resight fit` writes it")]
_SHOWN = 20
_FORGET = "resight.gallery-forget/1"
_OF_BACKUPS = (
    "Backups are not reached by `forget` and `retain`: delete those that hold people who were "
    "erased since, and after restoring one erase them again"
)


@app.command()
def create(
    place: _Place,
    model: _Model,
    retention: Annotated[
        float | None, typer.Option(metavar="DAYS", help="remove sightings older than this")
    ] = None,
    descriptors: Annotated[
        bool,
        typer.Option(help="store descriptors; without them another model describes all again"),
    ] = True,
    json: _Json = False,
) -> None:
    """Make an empty gallery that searches with a model."""
    from resight.gallery import Gallery
    from resight.gallery.manifest import DESCRIPTORS
    from resight.saving import load

    stored = DESCRIPTORS if descriptors else "none"
    gallery = Gallery.create(place, load(model), retention_days=retention, descriptors=stored)
    if json:
        print_json({"schema": "resight.gallery-info/1", **gallery.info()})
    else:
        print(f"made an empty gallery: {place}. Fill it: resight gallery add {place} IMAGES")


@app.command()
def add(
    place: _Place,
    data: Annotated[
        str, typer.Argument(help="a folder of images, a CSV of sightings, or a dataset's name")
    ],
    root: _Root = None,
    camera: _Camera = None,
    unlabelled: _Unlabelled = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="local processes that describe images; one per core if not given"),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler, tcp://HOST:PORT: its workers do it"),
    ] = None,
    json: _Json = False,
) -> None:
    """Add sightings; what is there already is passed over, so a stopped command goes on."""
    from resight._progress import progress
    from resight.gallery import Gallery
    from resight.workers import executors

    if jobs is not None and cluster is not None:
        raise typer.BadParameter("give --jobs (this machine) or --cluster, not both")
    sightings = _sightings(data, root, camera, unlabelled)
    gallery = Gallery.open(place)
    workers = executors.local(jobs) if cluster is None else executors.cluster(cluster)
    with workers, progress("adding", len(sightings)) as advance:
        result = gallery.add(sightings, on_batch=lambda ids: advance(len(ids)), executor=workers)
    for path, reason in result.failures[:_SHOWN]:
        say(f"not added: {path}: {reason}")
    if len(result.failures) > _SHOWN:
        say(f"and {len(result.failures) - _SHOWN} more (all of them with --json)")
    _print_added(place, result, len(gallery), json)
    if result.failures:
        raise typer.Exit(1)


def _print_added(place: str, result: Added, total: int, as_json: bool) -> None:
    if as_json:
        failures = [{"path": path, "reason": reason} for path, reason in result.failures]
        counts = {"added": len(result.added), "already": len(result.already), "sightings": total}
        print_json({"schema": "resight.gallery-add/1", **counts, "failures": failures})
    else:
        print(
            f"added {len(result.added)} sightings, {len(result.already)} were there already, "
            f"{len(result.failures)} cannot be read; the gallery has {total}. "
            f"Look at it: resight serve {place}"
        )


@app.command()
def remove(
    place: _Place,
    ids: Annotated[list[str], typer.Argument(help="sightings, by the ids that search prints")],
) -> None:
    """Remove sightings by their ids (`forget` erases a person with proof)."""
    from resight.gallery import Gallery

    gallery = Gallery.open(place)
    print(f"removed {gallery.remove(ids)} sightings; {len(gallery)} are left")


@app.command()
def info(place: _Place, json: _Json = False) -> None:
    """Tell what a gallery holds."""
    from resight.gallery import Gallery
    from resight.times import show

    facts = Gallery.open(place).info()
    if json:
        print_json({"schema": "resight.gallery-info/1", **facts})
        return
    for name, value in facts.items():
        if name == "cameras":
            value = ", ".join(f"{camera} ({count})" for camera, count in value.items())
        elif name in ("times", "model_since"):
            moments = value if isinstance(value, list) else [value]
            value = " to ".join(show(moment) for moment in moments)
        elif name == "bytes_per_sighting":
            value = ", ".join(f"{part} {size:,.0f}" for part, size in value.items())
        print(f"{name.replace('_', ' '):<15} {'-' if value in (None, '') else value}")


@app.command()
def check(place: _Place, json: _Json = False) -> None:
    """Read everything in a gallery; exit code 1 if something is damaged."""
    from resight.gallery.checking import check as check_gallery

    report = check_gallery(place)
    if json:
        print_json(
            {
                "schema": "resight.gallery-check/1",
                "clean": report.clean,
                "sightings": report.sightings,
                "problems": report.problems,
                "notes": report.notes,
                "recall": report.recall,
            }
        )
    else:
        for text in report.problems:
            print(f"damaged: {text}")
        for text in report.notes:
            print(f"note: {text}")
        if report.recall is not None:
            print(f"approximate index: finds {100 * report.recall:.1f}% of the true 10 nearest")
        print(f"{report.sightings} sightings: {'clean' if report.clean else 'NOT clean'}")
    if not report.clean:
        raise typer.Exit(1)


@app.command()
def rebuild(place: _Place, model: _Model) -> None:
    """Use another model: embeds all sightings again from their stored descriptors.

    A stopped command goes on where it was; until it is done, searches use the old model.
    """
    from resight.gallery import Gallery
    from resight.saving import load

    gallery = Gallery.open(place)
    with _shares("embedding") as on_step:
        gallery.rebuild(load(model), on_step=on_step)
    print(f"{len(gallery)} sightings are now searched with {model}")


@app.command()
def backup(place: _Place, file: Annotated[Path, typer.Argument(help="a new file")]) -> None:
    """Copy a gallery into one file, as it is at this moment, while others use it."""
    from resight.gallery.copying import backup as write

    with _shares("copying") as on_step:
        n = write(place, file, on_step)
    print(f"{n} sightings are in {file}. {_OF_BACKUPS}")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="as `resight gallery backup` wrote it")],
    place: _Place,
) -> None:
    """Make a gallery from a backup, in a folder or in PostgreSQL."""
    from resight.gallery.copying import restore as read

    with _shares("copying") as on_step:
        n = read(file, place, on_step)
    print(f"{place} has the {n} sightings of {file}. {_OF_BACKUPS}")


@app.command()
def convert(
    old: Annotated[str, typer.Argument(help="a folder, s3://, gs:// or az:// of resight 0.1")],
    place: Annotated[str, typer.Argument(metavar="NEW", help="a folder or postgresql://...#name")],
) -> None:
    """Make a gallery from one that resight 0.1 wrote (LanceDB); the old one is not changed."""
    from resight.gallery.copying import convert as read

    with _shares("converting") as on_step:
        n = read(old, place, on_step)
    print(
        f"{place} has the {n} sightings of {old}. Once you have seen that it works, delete the old "
        "one: people who are forgotten in the new one are still in it"
    )


@contextmanager
def _shares(words: str) -> Iterator[Callable[[float], None]]:
    """Show progress of something that tells the share that is done."""
    from resight._progress import progress

    with progress(words, 100) as advance:
        done = 0

        def on_step(share: float) -> None:
            nonlocal done
            advance(int(100 * share) - done)
            done = int(100 * share)

        yield on_step


@app.command()
def forget(
    place: _Place,
    person: Annotated[str, typer.Argument(help="as shown by search and on the page")] = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="finish what was begun and not finished")
    ] = False,
    json: _Json = False,
) -> None:
    """Erase a person's sightings, crops, embeddings and labels, and search for what is left."""
    from dataclasses import asdict

    from resight.gallery import Gallery, forgetting

    if bool(person) == resume:
        raise typer.BadParameter("give a person, or --resume to finish what was begun before")
    gallery = Gallery.open(place)
    done = forgetting.resume(gallery) if resume else [forgetting.forget(gallery, person)]
    if json:
        documents = [{"schema": _FORGET, **asdict(one)} for one in done]
        print_json({"schema": _FORGET, "finished": documents} if resume else documents[0])
        return
    for one in done:
        _print_forgotten(one)
    if not done:
        print("nothing was left to finish")


def _print_forgotten(done: Forgotten) -> None:
    who = repr(done.person) if done.person else "old sightings"
    print(
        f"erased {who}: {done.sightings} sightings, {done.labels} labels, {done.searches} log "
        f"entries. Checked {done.checked}: nothing is left. Copies elsewhere (backups, the "
        "original images, models fitted outside) are not reached by this"
    )
    if done.limits:
        print(done.limits)
    if done.models_replaced:
        print("the model had been taught with this person: an earlier one is in use again")


@app.command()
def retain(
    place: _Place,
    days: Annotated[
        float | None, typer.Argument(help="remove sightings older than this; none = keep all")
    ] = None,
) -> None:
    """Set for how many days sightings are kept, and remove older ones now."""
    from resight.gallery import Gallery
    from resight.gallery.forgetting import expire

    gallery = Gallery.open(place)
    gallery.retain(days)
    removed = expire(gallery)
    kept = "for good" if days is None else f"for {days:g} days"
    print(f"sightings are kept {kept}; {removed} were removed, {len(gallery)} are left")


def _sightings(data: str, root: Path | None, camera: str | None, unlabelled: bool) -> Sightings:
    from dataclasses import replace

    import numpy as np

    from resight import datasets

    path = Path(data)
    if camera is not None and path.exists() and not (path.is_file() and path.suffix == ".csv"):
        return _of_one_camera(path, camera)
    sightings = datasets.load(data, root=root)
    changes: dict[str, Any] = {}
    if camera is not None:
        changes["cameras"] = np.full(len(sightings), camera)
    if unlabelled:
        changes["persons"] = np.full(len(sightings), "")
    return replace(sightings, **changes)


def _of_one_camera(path: Path, camera: str) -> Sightings:
    """Take one image, or all images of a folder, as unlabelled sightings of one camera."""
    import numpy as np

    from resight.datasets._walk import images_below
    from resight.datasets.sightings import Sightings
    from resight.errors import InputError

    names = [path.name] if path.is_file() else [str(name) for name in images_below(path)]
    if not names:
        raise InputError(f"no images in {str(path)!r}; give a folder that has some")
    unknown, cameras = np.full(len(names), ""), np.full(len(names), camera)
    return Sightings(
        np.array(names), unknown, cameras, root=path.parent if path.is_file() else path
    )
