"""The log is evidence: what was tampered with is found, and what was erased is gone."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resight.errors import InputError, StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.copying import backup, restore
from resight.gallery.forgetting import expire, forget
from resight.gallery.log import Actor, LogRow, adopt, latest, log_rows, operator, verify
from resight.gallery.users import add_user

ANN = Actor("ann", "page", "10.0.0.7", "missing child, case 12")
BOB = Actor("bob", "page")


def searched(gallery: Gallery, n: int = 6) -> list[LogRow]:
    """Search for some sightings, as the page does."""
    for like in gallery.view.table.ids[:n].tolist():
        shown = [hit.id for hit in gallery.search_like(like, 3)]
        gallery.record(ANN, "search", query=[like], shown=shown, filters={"camera": ["yard"]})
    return list(log_rows(gallery.engine))


def test_an_entry_answers_who_when_what_for_and_whom(gallery: Gallery) -> None:
    rows = searched(gallery, 1)
    [entry] = latest(gallery.engine, 5)
    like = str(gallery.view.table.ids[0])
    assert (entry["who"], entry["via"], entry["address"]) == ("ann", "page", "10.0.0.7")
    assert entry["purpose"] == "missing child, case 12"
    assert entry["begin"] <= entry["end"]
    assert (entry["what"], entry["query"], entry["filters"]) == (
        "search", [like], {"camera": ["yard"]},
    )  # fmt: skip
    assert entry["shown"] == [hit.id for hit in gallery.search_like(like, 3)]
    assert entry["model"] == gallery.model.fingerprint
    assert entry["gallery"] == gallery.engine.place
    assert verify(rows).head == f"1:{rows[0].hash}"


def test_a_changed_removed_or_moved_entry_is_found(gallery: Gallery) -> None:
    rows = searched(gallery)
    head = verify(rows).head
    searched(gallery, 1)
    rows = list(log_rows(gallery.engine))
    assert verify(rows, head).problems == []
    act = json.loads(rows[2].act or "")
    forged = rows[2]._replace(act=json.dumps({**act, "who": "bob"}))
    other = rows[2]._replace(subjects=rows[3].subjects)
    cases = {
        "changed": [*rows[:2], forged, *rows[3:]],
        "whom": [*rows[:2], other, *rows[3:]],
        "removed": [*rows[:2], *rows[3:]],
        "moved": [*rows[:2], rows[3], rows[2], *rows[4:]],
        "renumbered": [
            *rows[:2], rows[3]._replace(number=3), rows[2]._replace(number=4), *rows[4:],
        ],
        "emptied": [*rows[:2], rows[2]._replace(act=None, salt=None, subjects=None), *rows[3:]],
        "subjects emptied": [*rows[:2], rows[2]._replace(subjects=None), *rows[3:]],
        "cut off": rows[:5],
        "first gone": rows[1:],
        "all gone": [],
    }  # fmt: skip
    for what, tampered in cases.items():
        assert verify(tampered, head).problems, what
    assert verify([rows[0]._replace(act="no JSON")]).problems == ["entry 1 was changed"]
    gallery.engine.ask("UPDATE log SET act = 'no JSON' WHERE number = 2")
    assert "log: entry 2 was changed" in check(gallery.uri).problems
    assert "entry 3 was changed" in verify(cases["changed"]).problems


def test_a_chain_that_was_written_anew_is_found_by_the_head_alone(gallery: Gallery) -> None:
    head = verify(searched(gallery)).head
    gallery.engine.ask("DELETE FROM log")
    forged = searched(gallery)
    assert verify(forged).problems == []  # as the documentation says: whole by itself
    assert verify(forged, head).problems == ["entry 6 is not the one of the exported head"]
    with pytest.raises(InputError, match="no head of a log"):
        verify(forged, "12")


def test_erasing_leaves_the_chain_provable_and_no_trace(gallery: Gallery) -> None:
    view, engine = gallery.view, gallery.engine
    mine = view.table.ids[view.persons == "0003"].tolist()
    other = str(view.table.ids[view.persons == "0004"][0])
    gallery.teach("name", mine[0], person="Zoë Planted", by=ANN)
    gallery.record(ANN, "search", query=[other], shown=[mine[0], other])
    gallery.record(ANN, "person", persons=["Zoë Planted"], shown=mine)
    gallery.record(ANN, "search", query=[other], shown=[other])
    gallery.record(Actor("ann", purpose="where is Zoë Planted?"), "search", query=[other])
    head = verify(log_rows(engine)).head
    salts = [row.subject_salt for row in log_rows(engine) if row.number in (1, 2, 3)]
    done = forget(gallery, "Zoë Planted", BOB)
    assert done.searches == 4
    names = [b"Zo\\u00eb Planted", "Zoë Planted".encode()]
    gone = [*map(str.encode, (*mine, *filter(None, salts))), *names]
    assert engine.traces(gone) == {}
    rows = list(log_rows(engine))
    proof = verify(rows, head)
    assert (proof.problems, proof.erased) == ([], 4)
    entries = latest(engine, 10)
    assert [entry["what"] for entry in entries] == [
        "name", "search", "person", "search", "erased", "forget",
    ]  # fmt: skip
    assert entries[1]["who"] == "ann"  # who searched, and when, is still known
    assert entries[3]["query"] == [other]
    assert (entries[5]["who"], entries[5]["sightings"]) == ("bob", 3)
    forged = [rows[3]._replace(subjects=None, subject_salt=None), *rows[4:]]
    assert verify([*rows[:3], *forged], head).problems == [
        "entry 4 was emptied, and no erasing says so"
    ]
    assert check(gallery.uri).clean


def test_retention_empties_old_entries_and_keeps_the_proof(gallery: Gallery) -> None:
    head = verify(searched(gallery)).head
    adopt(gallery.engine, [("old", json.dumps({"when": 1.0, "what": "search"}))])
    gallery.require(log_days=30)
    assert expire(gallery, now=None) == 0
    assert [e["what"] for e in latest(gallery.engine, 2)] == ["erased", "log retention"]
    gallery.retain(None)
    soon = latest(gallery.engine, 1)[0]["end"] + 31 * 86_400
    expire(gallery, now=soon)
    expire(gallery, now=soon)
    proof = verify(log_rows(gallery.engine), head)
    assert (proof.problems, proof.erased) == ([], 7)
    assert {e["what"] for e in latest(gallery.engine, 99)} == {"erased", "log retention"}


def test_entries_of_many_threads_and_processes_share_commits(gallery: Gallery) -> None:
    other = Gallery.open(gallery.uri)
    ids, commits = gallery.view.table.ids.tolist(), []
    for one in (gallery, other):
        one.record(ANN, "begin")
        engine = one._writer._engine
        whole = engine.many
        engine.many = lambda to, rows, whole=whole: (commits.append(len(rows)), whole(to, rows))[1]  # type: ignore[method-assign]

    def write(one: Gallery, number: int) -> None:
        for k in range(10):
            one.record(ANN, f"search {number} {k}", query=[ids[k]])

    threads = [
        threading.Thread(target=write, args=(one, n)) for n, one in enumerate([gallery, other] * 6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(commits) == 120
    assert len(commits) < 120  # those who came while others wrote went together
    rows = list(log_rows(gallery.engine))
    assert verify(rows).problems == []
    assert len({json.loads(row.act or "")["what"] for row in rows}) == 121
    other.close()


def test_no_answer_without_its_entry(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    gallery.record(ANN, "begin")
    engine = gallery._writer._engine

    def full(statement: str, rows: Any) -> None:
        time.sleep(0.05)
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(engine, "many", full)
        with ThreadPoolExecutor(4) as threads:  # whoever shares the commit hears of it, too
            told = [threads.submit(gallery.record, ANN, f"search {n}") for n in range(4)]
        assert {str(one.exception()) for one in told} == {"the disk is full"}
    gallery.record(ANN, "search")
    assert [entry["what"] for entry in latest(gallery.engine, 9)] == ["begin", "search"]


def test_a_purpose_is_asked_for(gallery: Gallery) -> None:
    like = str(gallery.view.table.ids[0])
    gallery.record(BOB, "search", query=[like])
    gallery.require(asks_purpose=True)
    with pytest.raises(InputError, match="asks for a purpose"):
        gallery.record(BOB, "search", query=[like])
    gallery.record(ANN, "search", query=[like])
    gallery.require(asks_purpose=False)
    gallery.record(BOB, "search", query=[like])


def test_a_match_counts_once_a_second_person_has_confirmed_it(gallery: Gallery) -> None:
    a, b, c, d = gallery.view.table.ids[gallery.view.persons == ""][:4].tolist()
    gallery.teach("same", c, d, by=ANN)  # before it is asked for: counts as it did
    gallery.require(second_person=True)
    first = gallery.teach("same", a, b, by=ANN)
    labels = gallery.view.labels
    assert (labels.person(a), labels.verdict(a, b), labels.waiting) == ("", "waiting", [first])
    assert labels.verdict(c, d) == "same"
    with pytest.raises(InputError, match="another person has to confirm"):
        gallery.teach("same", b, a, by=ANN)
    second = gallery.teach("same", b, a, by=BOB)
    labels = gallery.view.labels
    assert (second.kind, second.a) == ("confirm", first.key)
    assert (labels.verdict(a, b), labels.waiting) == ("same", [])
    decided = [(e["what"], e["who"]) for e in latest(gallery.engine, 2)]
    assert decided == [("same", "ann"), ("confirm", "bob")]
    gallery.teach("undo", first.key, by=BOB)
    assert gallery.view.labels.verdict(a, b) is None
    gallery.teach("same", a, b, by=ANN)
    forget(gallery, gallery.view.labels.person(c))
    assert len(gallery.view.labels.waiting) == 1


def test_an_answer_and_its_entry_are_one_change(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = gallery.view.table.ids[gallery.view.persons == ""][:2].tolist()

    def full(statement: str, rows: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(gallery.engine, "many", full)
    with pytest.raises(StoreError, match="full"):
        gallery.teach("same", a, b)
    assert gallery.view.labels.active == []


def test_a_copy_continues_the_chain_without_sessions(gallery: Gallery, tmp_path: Path) -> None:
    from resight.gallery import users

    head = verify(searched(gallery)).head
    add_user(gallery.engine, "ann", "teacher", "correct horse")
    secret = users.issue(gallery.engine, "ann", "teacher", "token")
    backup(gallery.uri, tmp_path / "x.backup")
    restore(tmp_path / "x.backup", tmp_path / "copy")
    copy = Gallery.open(tmp_path / "copy")
    copy.record(operator(), "restore")
    assert verify(log_rows(copy.engine), head).problems == []
    assert users.check_password(copy.engine, "ann", "correct horse")
    assert users.find(copy.engine, secret, 60) is None
    copy.close()


def test_what_0_1_logged_begins_the_chain(gallery: Gallery) -> None:
    ids = gallery.view.table.ids[gallery.view.persons == "0003"].tolist()
    old = [
        {"when": 1.7e9, "who": "127.0.0.1", "what": "search", "query": [ids[0]]},
        {"what": "forget", "query": ["somebody"]},
    ]
    adopt(gallery.engine, [(str(n), json.dumps(entry)) for n, entry in enumerate(old)])
    gallery.record(ANN, "search", query=[ids[0]])
    first, second, third = latest(gallery.engine, 9)
    assert (first["number"], first["what"], first["who"]) == (1, "search (0.1)", "127.0.0.1")
    assert (first["end"], first["via"]) == (1.7e9, "resight 0.1")
    assert [first["entry"], second["entry"]] == old
    assert third["number"] == 3
    assert verify(log_rows(gallery.engine)).problems == []
    assert forget(gallery, "0003").searches == 2
    assert [entry.get("entry") for entry in latest(gallery.engine, 9)[:2]] == [None, old[1]]
    assert verify(log_rows(gallery.engine)).problems == []
