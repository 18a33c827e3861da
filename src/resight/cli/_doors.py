"""``resight gallery users``, ``log`` and ``require``: who comes in, and what is kept of it."""

from __future__ import annotations

import os
import sys
from json import dumps
from pathlib import Path
from typing import Any

import typer

from resight.cli._common import GalleryPlace, Json, answer, open_gallery, option, record

_PASSWORD = "RESIGHT_PASSWORD"
_NOBODY = "no users yet: `resight serve` prints a link for one log-in. Add some with --add"


def users(
    place: GalleryPlace,
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
    place: GalleryPlace,
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
    from resight._files import atomic_write
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
    place: GalleryPlace,
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
