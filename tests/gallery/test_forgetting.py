"""Erasing: nothing is left, and whatever interrupts it, any process can finish it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.gallery import Gallery
from resight.gallery import forgetting as erasing
from resight.gallery.checking import check
from resight.gallery.engines.base import Engine
from resight.gallery.forgetting import expire, forget, needles, resume
from resight.gallery.log import Actor, adopt, latest
from resight.gallery.manifest import Manifest


def held(engine: Engine, look_for: list[bytes]) -> set[bytes]:
    return set().union(*engine.traces(look_for).values())


def embedding_needles(gallery: Gallery, ids: list[str]) -> list[set[bytes]]:
    """Pieces of the embeddings of some sightings, in each order of bytes."""
    generation = Manifest.read(gallery.engine).current
    rows = [
        vectors[np.isin(keys, ids)]
        for keys, vectors in gallery.engine.embeddings(generation.number, generation.width)
    ]
    return [
        {
            piece
            for row in np.concatenate(rows)
            for piece in erasing.needles_of(row.astype(o).tobytes(), 4)
        }
        for o in ("<f4", ">f4")
    ]


def test_forgetting_leaves_no_trace(gallery: Gallery, people: Sightings) -> None:
    view = gallery.view
    ids = view.table.ids[view.persons == "0003"].tolist()
    other = str(view.table.ids[view.persons == "0004"][0])
    unknown = view.table.ids[view.persons == ""].tolist()
    gallery.teach("same", ids[0], unknown[0])
    gallery.teach("different", other, unknown[1])
    gallery.record(Actor("ann"), "search", query=[ids[1]])
    gallery.record(Actor("ann"), "search", query=[other])
    erased = [*ids, unknown[0]]
    look_for = needles(gallery.engine, erased)
    missing = set(look_for) - held(gallery.engine, look_for)
    assert missing in embedding_needles(gallery, erased)  # vectors lie there in one byte order only

    result = forget(gallery, "0003")
    assert (result.sightings, result.labels, result.searches) == (4, 1, 2)  # and the answer's own
    assert held(gallery.engine, look_for) == set()
    assert "0003" not in gallery.view.persons
    assert len(gallery) == 32
    found = [e for e in latest(gallery.engine, 9) if e["what"] == "search"]
    assert [e.get("query") for e in found] == [None, [other]]
    assert len(gallery.view.labels.active) == 1
    assert gallery.info()["erasing_unfinished"] == 0
    assert check(gallery.uri).clean
    with pytest.raises(InputError, match="unknown person '0003'"):
        forget(gallery, "0003")


def test_needles_of_every_kind_are_found(gallery: Gallery) -> None:
    """Planted: an id, an image, a descriptor, an embedding, a name, a log entry, a document."""
    engine, ids = gallery.engine, gallery.view.table.ids[:3].tolist()
    kinds = {sighting.encode() for sighting in ids}
    assert kinds <= held(engine, sorted(kinds))
    for column in ("image", "feature"):
        for content in engine.fetch(ids, column).values():  # type: ignore[arg-type]
            pieces = erasing.needles_of(content)
            assert len(pieces) >= 4
            assert held(engine, pieces) == set(pieces)
    generation = Manifest.read(engine).current
    for keys, vectors in engine.embeddings(generation.number, generation.width):
        row = vectors[keys.tolist().index(ids[0])]
        both = [row.astype(order).tobytes() for order in ("<f4", ">f4")]
        assert len(held(engine, both)) == 1
    rng = np.random.default_rng(0)
    model, entry = rng.bytes(100_000), rng.bytes(2000).hex()
    engine.put({"model/9/planted": model})
    adopt(engine, [("k", json.dumps({"who": "Zoë Planted", "query": [entry]}))])
    texts = [json.dumps("Zoë Planted")[1:-1].encode(), entry[900:960].encode()]
    assert held(engine, [*texts, *erasing.needles_of(model)]) >= {*texts}
    assert held(engine, erasing.needles_of(model)) == set(erasing.needles_of(model))
    assert held(engine, [b"0003"]) == {b"0003"}


def test_why_and_a_condition_on_the_name_are_erased_from_the_log(gallery: Gallery) -> None:
    """As 0.1 wrote them ("ID and ID", JSON inside of JSON), and as they are written now."""
    view, engine = gallery.view, gallery.engine
    a, b = view.table.ids[view.persons == "0003"][:2].tolist()
    other = str(view.table.ids[view.persons == "0004"][0])
    entries = [
        {"what": "why", "query": f"{a} and {other}"},
        {"what": "why", "query": [other, b]},
        {"what": "search", "query": other, "conditions": json.dumps({"person": ["0003"]})},
        {"what": "search", "query": [other], "conditions": {"person": ["0004", "0003"]}},
        {"what": "person", "query": ["0003"]},
        {"what": "search", "query": [other], "conditions": {"person": ["00034"]}},
    ]
    adopt(engine, [(str(number), json.dumps(entry)) for number, entry in enumerate(entries)])
    assert forget(gallery, "0003").searches == 5
    assert [e["entry"] for e in latest(engine, 9) if "entry" in e] == [entries[5]]


class Stopped(Exception):  # noqa: N818
    """Raised somewhere in the middle, as a kill or a full disk would end it."""


STEPS = ("put 1", "put 2", "remove 1", "purge 1", "purge 2", "drop 1", "drop 2", "amend 1")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("by", ["forget", "retain"])
def test_an_interrupted_job_is_finished_by_another_process(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch, step: str, by: str, model: Any
) -> None:
    """Stopped before the n-th call of each step of the engine; another one finishes it."""
    view = gallery.view
    erased = view.table.ids[view.persons == "0003"].tolist()
    look_for = needles(gallery.engine, erased)
    gallery.rebuild(model(seed=1), origin="refit", trained_on=erased)
    look_for += needles(gallery.engine, erased)
    gallery.teach("different", erased[0], str(view.table.ids[view.persons == "0004"][0]))
    if by == "retain":
        gallery.retain(30)
    name, n = step.split()
    calls = iter(range(int(n) - 1))
    whole = getattr(gallery.engine, name)

    def stopping(*args: Any, **kwargs: Any) -> Any:
        if next(calls, None) is None:
            raise Stopped
        return whole(*args, **kwargs)

    def run(on: Gallery) -> None:
        if by == "forget":
            forget(on, "0003")
        else:
            expire(on, now=1e12)

    monkeypatch.setattr(gallery.engine, name, stopping)
    with pytest.raises(Stopped):
        run(gallery)
    gallery.engine.close()
    other = Gallery.open(gallery.uri)
    begun = other.info()["erasing_unfinished"]
    assert check(gallery.uri).clean == (begun == 0)
    if begun:
        assert "forget" in " ".join(check(gallery.uri).problems)
    resume(other)
    if by == "forget" and not begun:
        forget(other, "0003")
    elif by == "retain":
        run(other)
    else:  # the same command again finds the job done, or the person gone
        with pytest.raises(InputError, match="unknown person"):
            forget(other, "0003")
    assert held(other.engine, look_for) == set()
    assert other.info()["erasing_unfinished"] == 0
    assert len(other) == (33 if by == "forget" else 0)
    assert check(gallery.uri).clean
    other.close()


def test_the_same_command_finishes_an_interrupted_one(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> Any:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(gallery.engine, "purge", full)
        with pytest.raises(StoreError, match="full"):
            forget(gallery, "0003")
    assert "0003" not in gallery.view.persons
    done = forget(gallery, "0003")
    assert (done.person, done.sightings) == ("0003", 3)


def test_the_same_image_of_another_sighting_may_stay(gallery: Gallery, people: Sightings) -> None:
    again = replace(people.select(people.persons == "0003"), persons=np.full(3, "0004"))
    gallery.add(replace(again, times=np.arange(3.0)))
    assert forget(gallery, "0003").sightings == 3
    assert (gallery.view.persons == "0004").sum() == 6
    assert check(gallery.uri).clean


def test_a_name_that_is_part_of_another_one(gallery: Gallery) -> None:
    view = gallery.view
    first, second = (str(view.table.ids[view.persons == p][0]) for p in ("0001", "0002"))
    gallery.teach("name", first, person="Ann")
    gallery.teach("name", second, person="Anna")
    assert forget(gallery, "Ann").labels == 1
    assert gallery.view.labels.person(second) == "Anna"


def test_models_taught_with_a_person_are_dropped(
    gallery: Gallery, model: Callable[..., Any], people: Sightings
) -> None:
    view = gallery.view
    ids = view.table.ids[view.persons == "0002"].tolist()
    gallery.rebuild(model(seed=1), origin="refit", trained_on=ids)
    gallery.rebuild(model(seed=2), origin="rebuild")
    gallery.rebuild(model(seed=3), origin="refit", trained_on=ids)
    result = forget(gallery, "0002")
    assert result.models_replaced == 1
    assert gallery.model.fingerprint == "stripe-model-2-8"
    assert len(gallery.search(people.files()[0], k=99, same_pictures=True)) == 33


def test_retention(uri: str, people: Sightings, model: Callable[..., Any]) -> None:
    gallery = Gallery.create(uri, model(), retention_days=30)
    day = 86_400.0
    times = 1.7e9 + np.where(np.arange(36) < 10, 0.0, 20 * day)
    times[20:] = np.nan  # as old as their stay in the gallery
    gallery.add(replace(people, times=times))
    assert expire(gallery, now=1.7e9 + 40 * day) == 10
    assert len(gallery) == 26
    assert expire(gallery, now=1.7e9 + 40 * day) == 0
    gallery.retain(None)
    assert expire(gallery, now=1e12) == 0
    with pytest.raises(InputError, match="from 0 to 36,500"):
        gallery.retain(-1)
    with pytest.raises(InputError, match="above 0"):
        gallery.retain(0)


def test_erased_bytes_leave_the_folder(
    tmp_path: Path, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(tmp_path / "gallery", model())
    gallery.add(people)
    content = people.files()[0].read_bytes()

    def files() -> bytes:
        found = (tmp_path / "gallery").rglob("*")
        return b"".join(file.read_bytes() for file in found if file.is_file())

    assert content[200:300] in files()
    ids = gallery.view.table.ids[gallery.view.persons == "0001"].tolist()
    forget(gallery, str(people.persons[0]))
    assert content[200:300] not in files()
    assert not any(sighting.encode() in files() for sighting in ids)


@pytest.mark.postgres
def test_what_the_administrator_does_removes_the_last_traces(
    postgres: str, tmp_path: Path, model: Callable[..., Any]
) -> None:
    """PostgreSQL's own log holds what was written; the commands that `forget` prints remove it."""
    import psycopg

    from resight.datasets.synthetic import draw_cameras
    from resight.gallery.engines.scanning import file_blocks, scanned

    people = draw_cameras(tmp_path, n_people=4, n_cameras=2, seed=91)  # whom no other test stores
    with psycopg.connect(postgres, autocommit=True) as server:
        [(data,)] = server.execute("SHOW data_directory").fetchall()

        def traces() -> set[bytes]:
            files = [path for path in Path(data).rglob("*") if path.is_file()]
            found = scanned([(str(p), file_blocks(str(p))) for p in files], look_for)
            return set().union(*found.values())

        server.execute("ALTER SYSTEM SET wal_recycle = on")
        gallery = Gallery.create(f"{postgres}#wal", model())
        gallery.add(people)
        view = gallery.view
        look_for = needles(gallery.engine, view.table.ids[view.persons == "0003"].tolist())
        assert len(traces()) > 10
        done = forget(gallery, "0003")
        assert "write-ahead log" in done.limits
        assert gallery.engine.traces(look_for) == {}
        assert traces() != set()  # of the server, which a client cannot reach
        commands = done.limits.partition(" by: ")[2].partition(" and deletes")[0].split(";")
        for command in filter(None, map(str.strip, commands)):
            server.execute(command)  # type: ignore[arg-type]
        assert traces() == set()
        server.execute("ALTER SYSTEM RESET wal_recycle")
        gallery.close()


def test_a_reader_holds_the_log(
    tmp_path: Path, people: Sightings, model: Callable[..., Any]
) -> None:
    """The write-ahead log cannot be emptied while somebody reads an old state: said, resumable."""
    gallery = Gallery.create(tmp_path / "gallery", model())
    gallery.add(people)
    reader = Gallery.open(gallery.uri)
    gallery.engine.close()
    gallery.engine.wait = 0.2
    with reader.engine.transaction(reading=True):
        assert len(reader.engine.table()) == 36
        with pytest.raises(StoreError, match=r"waited 0.2 s .* --resume"):
            forget(gallery, "0003")
    assert gallery.info()["erasing_unfinished"] == 1
    assert [done.person for done in resume(gallery)] == ["0003"]
    assert gallery.info()["erasing_unfinished"] == 0
