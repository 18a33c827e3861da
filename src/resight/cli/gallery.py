"""``resight gallery``: create and manage a gallery of sightings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight._files import atomic_write
from resight._progress import progress
from resight.cli import _common as common
from resight.cli._common import Json, answer, count, flag, open_gallery, option, record

if TYPE_CHECKING:
    from resight.gallery.forgetting import Forgotten

_Place = common.GalleryPlace
_Model = Annotated[Path, option(..., "DIR", "Model folder, as written by `resight fit`")]
_FOLDER = {"exists": True, "file_okay": False}
_FORGET = "resight.gallery-forget/1"
_OF_BACKUPS = (
    "`forget` and `retain` do not reach backups: delete backups that contain erased people, and "
    "erase those people again after a restore"
)
_PASSWORD = "RESIGHT_PASSWORD"
_NOBODY = "no users yet: `resight serve` prints a link for one log-in. Add some with --add"


def create(
    place: _Place,
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
    place: _Place,
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
    place: _Place, ids: list[str] = typer.Argument(help="Ids of sightings, as printed by search")
) -> None:
    """Remove sightings by id (to erase a person and verify it, use `forget`)."""
    gallery = open_gallery(place)
    removed = gallery.remove(ids)
    record(gallery, "remove", removed=removed)
    print(f"removed {count(removed, 'sighting')}; {len(gallery):,} left")


def info(place: _Place, json: Json = False) -> None:
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


def check(place: _Place, json: Json = False) -> None:
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


def rebuild(place: _Place, model: _Model) -> None:
    """Switch to another model: recompute all embeddings from the stored descriptors.

    Run again to resume; until it has finished, searches use the old model.
    """
    from resight.models.model import Model

    gallery = open_gallery(place)
    _with_progress("embedding", partial(gallery.rebuild, Model.load(model)))
    record(gallery, "rebuild")
    print(f"{place} with {count(len(gallery), 'sighting')} now uses {model}")


def export(
    place: _Place,
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
    place: _Place, file: Path = typer.Argument(help="Backup file; it must not exist")
) -> None:
    """Back up a gallery to one file: a consistent copy, even while the gallery is in use."""
    from resight.gallery.copying import backup as write

    n = _with_progress("copying", partial(write, place, file))
    record(open_gallery(place), "backup", sightings=n)
    print(f"backed up {count(n, 'sighting')} to {file}. {_OF_BACKUPS}")


def restore(
    file: Annotated[Path, typer.Argument(help="Backup file, as written by `backup`")], place: _Place
) -> None:
    """Create a gallery from a backup, in a folder or in PostgreSQL."""
    from resight.gallery.copying import restore as read

    n = _with_progress("copying", partial(read, file, place))
    record(open_gallery(place), "restore", sightings=n)
    print(f"restored {count(n, 'sighting')} to {place}. {_OF_BACKUPS}")


def convert(
    old: Annotated[str, typer.Argument(help="Gallery of 0.1: folder, s3://..., gs:// or az://")],
    place: _Place,
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
    done = [0]
    with progress(words, 100) as advance:

        def on_step(share: float) -> None:
            done.append(int(100 * share))
            advance(done[-1] - done[-2])

        return work(on_step=on_step)


def forget(
    place: _Place,
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
    place: _Place,
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


def users(
    place: _Place,
    add: str | None = option(None, "NAME", "Add a user, or change role and password", "none"),
    role: str = option("viewer", "ROLE", "Role of the user: viewer, teacher, administrator"),
    password_file: Path | None = option(
        None, "FILE", "Password of --add", f"the variable {_PASSWORD}, or a prompt"
    ),
    remove: str | None = option(None, "NAME", "Remove a user and end their sessions", "none"),
    token: str | None = option(None, "NAME", "Print a new API token for a user", "none"),
    json: Json = False,
) -> None:
    """List, add and remove the users of a gallery's web page."""
    from resight.gallery import users as known

    gallery = open_gallery(place)
    engine = gallery.engine
    known.check_user(add or "nobody", role)
    if add is not None:
        known.add_user(engine, add, role, _password(password_file))
        record(gallery, "add user", user=add, role=role)
    if remove is not None:
        known.remove_user(engine, remove)
        record(gallery, "remove user", user=remove)
    if token is not None:
        user = known.user_named(engine, token)
        record(gallery, "issue token", user=token)
        print(known.issue(engine, user.name, user.role, "token"))
        return
    listed = [{"name": user.name, "role": user.role} for user in known.all_users(engine)]
    text = "\n".join(f"{one['name']:<24} {one['role']}" for one in listed)
    answer(json, {"schema": "resight.gallery-users/1", "users": listed}, text or _NOBODY)


def _password(file: Path | None) -> str:
    """Take a password from a file, the environment or a prompt: all hidden from other users."""
    from resight.validation import read_text

    if file is not None:
        return read_text(file, 4096).rstrip("\r\n")
    return os.environ.get(_PASSWORD) or str(
        typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    )


def log(
    place: _Place,
    last: int = option(20, "N", "Show the last entries", min=1, max=1_000_000),
    verify: str | None = option(
        None, "HEAD", "Verify every entry, and the chain against a head saved earlier", "no"
    ),
    export: Path | None = option(None, "FILE", "Write all entries as JSON lines", "no"),
    retain: float | None = option(
        None, "DAYS", "Delete the contents of older entries, now and from now on", "unchanged"
    ),
    json: Json = False,
) -> None:
    """Show, verify and export the log: who searched for whom.

    Save the printed head where the gallery's operator cannot change it: verifying against it
    tells whether the entries up to it were changed. Without a head (--verify ""), entries missing
    at the end and a rewritten chain go unnoticed.
    """
    from resight.gallery.log import expire_log, latest, log_head, log_rows, operator

    gallery = open_gallery(place)
    if verify is not None:
        _verify(log_rows(gallery.engine), verify)
        return
    if retain is not None:
        gallery.require(log_days=retain)
        record(gallery, "retain log", days=retain)
        emptied = expire_log(gallery.engine, operator())
        print(f"entries of the log are kept for {retain:g} days; emptied {emptied:,}")
        return
    record(gallery, "read log" if export is None else "export log")
    head = "{}:{}".format(*log_head(gallery.engine))
    if export is not None:
        with atomic_write(export, "w") as stream:
            stream.writelines(f"{dumps(row._asdict())}\n" for row in log_rows(gallery.engine))
        print(f"head {head}")
        return
    entries = latest(gallery.engine, last)
    document = {"schema": "resight.gallery-log/1", "head": head, "entries": entries}
    answer(json, document, "\n".join([*map(_line, entries), f"head {head}"]))


def _verify(rows: Any, head: str) -> None:
    from resight.gallery.log import verify

    found = verify(rows, head)
    for problem in found.problems:
        print(f"NOT PROVEN: {problem}", file=sys.stderr)
    said = "the chain is whole" + (" and leads through this head" if head else "")
    said = "the log cannot be trusted" if found.problems else said
    print(f"{found.entries} entries, {found.erased} of them erased: {said}; head {found.head}")
    if found.problems:
        raise typer.Exit(1)


def _line(entry: dict[str, Any]) -> str:
    from resight.times import show

    entry = dict(entry)
    number, when = entry.pop("number"), show(int(entry.pop("end", 0)))
    who, what = (entry.pop(key, "") for key in ("who", "what"))
    facts = {k: v for k, v in entry.items() if k not in ("begin", "gallery", "model")}
    return f"{number:>6}  {when:<19}  {who:<12} {what:<14} {dumps(facts, ensure_ascii=False)}"


def require(
    place: _Place,
    purpose: bool | None = typer.Option(
        None, help="Searches must state a purpose", show_default="unchanged"
    ),
    second_person: bool | None = typer.Option(
        None, help="A match counts only after two users confirmed it", show_default="unchanged"
    ),
    prior: float | None = option(
        None, "RATE", "Prior probability that a camera has seen the person", "unchanged"
    ),
    false_accepts: float | None = option(
        None, "RATE", "Largest share of absent people reported as found", "unchanged"
    ),
    false_rejects: float | None = option(
        None, "RATE", "Largest share of present people reported as not found", "unchanged"
    ),
) -> None:
    """Set the rules of a gallery: purpose, second confirmation, prior and error rates."""
    gallery = open_gallery(place)
    rules = {"asks_purpose": purpose, "second_person": second_person, "prior": prior}
    rules |= {"false_accepts": false_accepts, "false_rejects": false_rejects}
    gallery.require(**{name: value for name, value in rules.items() if value is not None})
    now = gallery.view.manifest
    rules = {"purpose": now.asks_purpose, "second person": now.second_person}
    record(gallery, "require", rules=rules)
    for name, on in rules.items():
        print(f"{name:<15} {'required' if on else 'not required'}")


COMMANDS = (
    *(create, add, remove, info, check, rebuild, export, backup, restore, convert, forget, retain),
    *(users, log, require),
)
