"""``resight gallery users``, ``log`` and ``require``: who comes in, and what is kept of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli._common import GalleryPlace, Json, option, print_json

if TYPE_CHECKING:
    from resight.gallery import Gallery

_PASSWORD = "RESIGHT_PASSWORD"


def users(
    place: GalleryPlace,
    add: Annotated[str, option("NAME", "Add a user, or change role and password", "none")] = "",
    role: Annotated[str, option("ROLE", "viewer, teacher or administrator")] = "viewer",
    password_file: Annotated[
        Path | None, option("FILE", "Password of --add", f"the variable {_PASSWORD}, or a prompt")
    ] = None,
    remove: Annotated[str, option("NAME", "Remove a user, ending every session", "none")] = "",
    token: Annotated[str, option("NAME", "Print a new token for a user's programs", "none")] = "",
    json: Json = False,
) -> None:
    """List, add and remove those who may log in to a gallery's web page."""
    from resight.gallery import Gallery
    from resight.gallery import users as known
    from resight.gallery.log import operator

    gallery = Gallery.open(place)
    engine = gallery.engine
    if add:
        known.add_user(engine, add, role, _password(password_file))
        gallery.record(operator(), "add user", user=add, role=role)
    if remove:
        known.remove_user(engine, remove)
        gallery.record(operator(), "remove user", user=remove)
    if token:
        user = known.user_named(engine, token)
        gallery.record(operator(), "issue token", user=token)
        print(known.issue(engine, user.name, user.role, "token"))
        return
    listed = [{"name": user.name, "role": user.role} for user in engine.users()]
    if json:
        print_json({"schema": "resight.gallery-users/1", "users": listed})
        return
    for one in listed:
        print(f"{one['name']:<24} {one['role']}")
    if not listed:
        print("no users yet: `resight serve` prints a link for one log-in. Add some with --add")


def _password(file: Path | None) -> str:
    """Take a password from a file, the environment or a prompt: all hidden from other users."""
    if file is not None:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    if _PASSWORD in os.environ:
        return os.environ[_PASSWORD]
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def log(
    place: GalleryPlace,
    last: Annotated[int, option("N", "Show the last entries", min=1)] = 20,
    verify: Annotated[
        str | None,
        option("HEAD", "Check every entry, and that the chain leads through an earlier head", "no"),
    ] = None,
    export: Annotated[
        Path | None, option("FILE", "Write all entries as JSON lines; - is standard output", "none")
    ] = None,
    retain: Annotated[
        float | None, option("DAYS", "Empty entries that are older, now and later", "unchanged")
    ] = None,
    json: Json = False,
) -> None:
    """Show, verify and export who searched for whom; the head proves all entries before it.

    Keep heads where whoever runs the gallery cannot change them. --verify "" checks without one,
    which does not find entries that are missing at the end, nor a chain that was written anew.
    """
    from resight.gallery import Gallery
    from resight.gallery.log_proof import verify as proven

    gallery = Gallery.open(place)
    if verify is not None:
        found = proven(gallery.engine.log_rows(), verify)
        for problem in found.problems:
            print(f"NOT PROVEN: {problem}", file=sys.stderr)
        said = "the chain is whole" if not found.problems else "the log cannot be trusted"
        said += " and leads through this head" if verify and not found.problems else ""
        print(f"{found.entries} entries, {found.erased} of them erased: {said}; head {found.head}")
        raise typer.Exit(1 if found.problems else 0)
    if retain is not None:
        _retain(gallery, retain)
    elif export is not None:
        _export(gallery, export)
    else:
        _show(gallery, last, json)


def _retain(gallery: Gallery, days: float) -> None:
    from resight.gallery.log import operator
    from resight.gallery.log_erasing import expire_log

    gallery.retain_log(days)
    gallery.record(operator(), "retain log", days=days)
    emptied = expire_log(gallery.engine, operator())
    print(f"entries of the log are kept for {days:g} days; emptied {emptied:,}")


def _export(gallery: Gallery, file: Path) -> None:
    import json

    from resight._files import atomic_write
    from resight.gallery.log import export, operator

    gallery.record(operator(), "export log")
    lines = (json.dumps(entry, allow_nan=False) + "\n" for entry in export(gallery.engine))
    if str(file) == "-":
        sys.stdout.writelines(lines)
        return
    with atomic_write(file, "w") as stream:
        stream.writelines(lines)
    number, last = gallery.engine.log_head()
    print(f"wrote {number} entries to {file}; head {number}:{last}")


def _show(gallery: Gallery, last: int, as_json: bool) -> None:
    from resight.gallery.log import latest, operator
    from resight.times import show

    gallery.record(operator(), "read log")
    entries = latest(gallery.engine, last)
    number, hashed = gallery.engine.log_head()
    head = f"{number}:{hashed}"
    if as_json:
        print_json({"schema": "resight.gallery-log/1", "head": head, "entries": entries})
        return
    for one in entries:
        print(_line(one, show(int(one.get("end", one.get("when", 0))))))
    print(f"head {head}")


def _line(entry: dict[str, Any], when: str) -> str:
    who = f"{entry.get('who', '')} ({entry['via']})" if "via" in entry else entry.get("who", "")
    query = entry.get("query", "")
    query = query if isinstance(query, str) else " ".join(query)
    shown = f"{len(entry['shown'])} shown" if "shown" in entry else ""
    number = entry["number"] or "-"
    facts = (entry.get("purpose", ""), query, *entry.get("persons", ()), shown)
    return f"{number:>6}  {when:<19}  {who:<24} {entry['what']:<14} {' '.join(filter(None, facts))}"


def require(
    place: GalleryPlace,
    purpose: Annotated[
        bool | None, typer.Option(help="Searches must state a purpose", show_default="unchanged")
    ] = None,
    second_person: Annotated[
        bool | None,
        typer.Option(help="A match counts once two people have said so", show_default="unchanged"),
    ] = None,
) -> None:
    """Set what a gallery asks of those who search and label."""
    from resight.gallery import Gallery
    from resight.gallery.log import operator

    gallery = Gallery.open(place)
    gallery.require(purpose=purpose, second_person=second_person)
    rules = gallery.view.manifest
    facts = {"purpose": rules.asks_purpose, "second_person": rules.second_person}
    gallery.record(operator(), "require", rules=facts)
    for name, on in facts.items():
        print(f"{name.replace('_', ' '):<15} {'required' if on else 'not required'}")
