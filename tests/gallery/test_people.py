"""People of a gallery: cards, corrections, undoing them, and two who correct at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import ConflictError, InputError
from resight.gallery import Gallery
from resight.gallery.forgetting import forget
from resight.gallery.labels import Entry, Labels
from resight.gallery.log import Actor, latest
from resight.gallery.people import correct, people, person, similar_people

ANN, BEN = Actor("ann"), Actor("ben")


def ids_of(gallery: Gallery, name: str) -> list[str]:
    return gallery.view.table.ids[gallery.view.persons == name].tolist()


def test_cards_say_who_is_there(gallery: Gallery) -> None:
    cards, total = gallery.people()
    assert total == len(cards) == 6
    assert [card.name for card in cards] == sorted(card.name for card in cards)
    first = cards[0]
    rows = np.flatnonzero(gallery.view.persons == first.name)
    assert first.sightings == len(rows) == 3
    assert first.cameras == ["camera-1", "camera-2", "camera-3"]
    assert first.last_seen == gallery.view.table.times[rows].max()
    assert first.cover in ids_of(gallery, first.name)


def test_search_pages_and_orders(gallery: Gallery) -> None:
    view = gallery.view
    assert [card.name for card in people(view, " 03")[0]] == ["0003"]
    assert people(view, "nobody") == ([], 0)
    second, total = people(view, page=2, per_page=4)
    assert ([card.name for card in second], total) == (["0005", "0006"], 6)
    assert people(view, page=99, per_page=4)[0] == second
    seen = [card.last_seen for card in people(view, order="seen")[0]]
    assert seen == sorted(seen, reverse=True)
    correct(gallery, "merge", "0004", other="0005")
    assert people(gallery.view, order="sightings")[0][0].name == "0004"
    with pytest.raises(InputError, match="unknown order 'age'"):
        people(view, order="age")  # type: ignore[arg-type]


def test_an_empty_gallery_has_nobody(uri: str, model: Callable[..., Any]) -> None:
    gallery = Gallery.create(uri, model())
    assert gallery.people() == ([], 0)
    with pytest.raises(InputError, match="unknown person 'Zoë'"):
        person(gallery.view, "Zoë")


@pytest.mark.parametrize("name", ["محمد", "王小明", "👩‍🚀 Zoë", "x" * 255])
def test_rename_and_undo(gallery: Gallery, name: str) -> None:
    done = correct(gallery, "rename", "0001", new=name, by=ANN)
    assert person(gallery.view, name).sightings == 3
    gallery.teach("undo", done.key)
    assert person(gallery.view, "0001").sightings == 3
    with pytest.raises(InputError, match="another person has the name '0002'"):
        correct(gallery, "rename", "0001", new="0002")
    with pytest.raises(InputError, match="300 characters; 255 at most"):
        correct(gallery, "rename", "0001", new="x" * 300)


def test_merge_joins_keeps_the_first_name_and_is_undone(gallery: Gallery) -> None:
    done = correct(gallery, "merge", "0002", other="0001", by=ANN)
    assert "0001" not in gallery.view.named
    assert person(gallery.view, "0002").sightings == 6
    assert latest(gallery.engine, 1)[0]["what"] == "merge"
    gallery.teach("undo", done.key)
    assert [person(gallery.view, name).sightings for name in ("0001", "0002")] == [3, 3]
    with pytest.raises(InputError, match="with itself"):
        correct(gallery, "merge", "0001", other="0001")


def test_a_merge_of_people_said_to_be_different_names_the_answer(gallery: Gallery) -> None:
    a, b = ids_of(gallery, "0001")[1], ids_of(gallery, "0002")[2]
    gallery.teach("different", a, b, by=BEN)
    with pytest.raises(InputError, match=r"0001 and 0002: ben said 'different' on .* undo that"):
        correct(gallery, "merge", "0001", other="0002")
    assert "0002" not in [card.name for card in similar_people(gallery.view, "0001")]


def test_split_makes_a_new_person_and_keeps_the_two_apart(gallery: Gallery) -> None:
    correct(gallery, "rename", "0001", new="Zoë")
    moved = ids_of(gallery, "Zoë")[:2]
    done = correct(gallery, "split", "Zoë", moved, new="Kim", by=ANN)
    assert (ids_of(gallery, "Kim"), person(gallery.view, "Zoë").sightings) == (moved, 1)
    with pytest.raises(InputError, match="ann said 'split'"):
        correct(gallery, "merge", "Zoë", other="Kim")
    gallery.teach("undo", done.key)
    assert person(gallery.view, "Zoë").sightings == 3
    with pytest.raises(InputError, match="rename the person instead"):
        correct(gallery, "split", "Zoë", ids_of(gallery, "Zoë"))
    with pytest.raises(InputError, match="is not one of 'Zoë'"):
        correct(gallery, "split", "Zoë", ids_of(gallery, "0002")[:1])
    unnamed = correct(gallery, "split", "Zoë", moved)
    assert ids_of(gallery, unnamed.person) == moved


def test_detach_makes_unknown_again(gallery: Gallery) -> None:
    [first, *rest] = ids_of(gallery, "0001")
    done = correct(gallery, "detach", "0001", [first])
    labels = gallery.view.labels
    assert (labels.person(first), labels.verdict(first, rest[0])) == ("", "different")
    assert ids_of(gallery, "0001") == rest
    unknown = gallery.view.table.ids[gallery.view.persons == ""][-1]
    later = gallery.teach("same", first, str(unknown), by=BEN)
    with pytest.raises(InputError, match=r"ben said 'same' on .* undo that first"):
        gallery.teach("undo", done.key)  # it would join the unknown one to 0001
    gallery.teach("undo", later.key)
    gallery.teach("undo", done.key)
    assert ids_of(gallery, "0001") == [first, *rest]
    correct(gallery, "detach", "0001", [first, *rest])
    assert "0001" not in gallery.view.named
    correct(gallery, "rename", "0002", new="0001")  # the name is free


def test_an_undo_that_would_give_two_people_one_name_is_refused(gallery: Gallery) -> None:
    done = correct(gallery, "rename", "0001", new="Zoë")
    correct(gallery, "rename", "0002", new="0001")
    with pytest.raises(InputError, match="two people would have the name '0001'"):
        gallery.teach("undo", done.key)


def test_cover(gallery: Gallery) -> None:
    chosen = ids_of(gallery, "0001")[2]
    done = correct(gallery, "cover", "0001", [chosen])
    assert person(gallery.view, "0001").cover == chosen
    gallery.teach("undo", done.key)
    assert person(gallery.view, "0001").cover != chosen
    with pytest.raises(InputError, match="is not one of '0002'"):
        correct(gallery, "cover", "0002", [chosen])


def test_the_later_of_two_who_correct_one_person_is_told(gallery: Gallery) -> None:
    seen = person(gallery.view, "0001").version
    elsewhere = Gallery.open(gallery.uri)
    moved = ids_of(gallery, "0001")[:1]
    correct(elsewhere, "detach", "0001", moved, seen=seen, by=BEN)
    before = gallery.view.labels.journal
    for late in (
        lambda: correct(gallery, "rename", "0001", new="Zoë", seen=seen, by=ANN),
        lambda: correct(gallery, "merge", "0001", other="0002", seen=seen, by=ANN),
    ):
        with pytest.raises(ConflictError, match=r"'0001' was changed .*ben said 'detach' on"):
            late()
    assert gallery.view.labels.journal == before
    other = person(gallery.view, "0002").version  # others may change
    correct(gallery, "rename", "0002", new="Kim", seen=other)
    correct(gallery, "rename", "0001", new="Zoë", seen=person(gallery.view, "0001").version)
    with pytest.raises(ConflictError, match="was changed"):  # by its old name
        correct(gallery, "rename", "0001", new="Zoe", seen=seen)


def test_similar_people_come_nearest_first(gallery: Gallery) -> None:
    found = similar_people(gallery.view, "0001", 3)
    distances = [card.distance for card in found]
    assert distances == sorted(distances)
    embeddings = gallery.view.index.embeddings
    own = embeddings[gallery.view.persons == "0001"].mean(axis=0)
    other = embeddings[gallery.view.persons == found[0].name].mean(axis=0)
    assert distances[0] == pytest.approx(((own - other) ** 2).sum(), rel=1e-4)


def test_answers_of_several_sightings_lose_only_the_erased(gallery: Gallery) -> None:
    a, b, c, d = gallery.view.table.ids[gallery.view.persons == ""][:4].tolist()
    gallery.teach("same", a, b, more=[c, d], person="Group")
    correct(gallery, "split", "Group", [d], new="Zoë Unique")
    forget(gallery, "Zoë Unique")
    assert sorted(ids_of(gallery, "Group")) == sorted([a, b, c])
    gallery.remove([a])
    assert sorted(ids_of(gallery, "Group")) == sorted([b, c])
    gallery.remove([b])
    assert ids_of(gallery, "Group") == [c]


def test_a_second_person_confirms_a_merge(gallery: Gallery) -> None:
    gallery.require(second_person=True)
    correct(gallery, "merge", "0001", other="0002", by=ANN)
    assert person(gallery.view, "0002").sightings == 3
    correct(gallery, "merge", "0001", other="0002", by=BEN)
    assert person(gallery.view, "0001").sightings == 6


def test_default_names_are_never_shared() -> None:
    ids = np.array(["abcdef11", "abcdef22", "abcdef33", "abcdef44"])
    journal = [Entry("same", ids[0], ids[1]), Entry("same", ids[2], ids[3])]
    labels = Labels(ids, np.full(4, ""), journal)
    assert labels.person(ids[0]) == "person abcdef"
    assert labels.person(ids[2]) == "person abcdef3"


def test_a_failed_act_leaves_no_trace(gallery: Gallery) -> None:
    a, b = gallery.view.table.ids[gallery.view.persons == ""][:2].tolist()
    with pytest.raises(InputError, match="no sighting 'gone'"):
        gallery.answer(lambda view: [Entry("same", a, b), Entry("different", a, "gone")])
    assert gallery.view.labels.journal == []
    gallery.teach("different", a, b)
    assert gallery.view.labels.verdict(a, b) == "different"


def test_answers_of_earlier_versions_are_read() -> None:
    old = '{"a": "x", "b": "y", "key": "k", "kind": "same", "person": "", "when": 1.0, "who": "me"}'
    assert Entry.load(old) == Entry("same", "x", "y", who="me", when=1.0, key="k")


def test_thousands_of_people_are_quick(tmp_path: Path, model: Callable[..., Any]) -> None:
    """A page of people costs what a search does, not what the gallery holds (a ratio, not time)."""
    from time import perf_counter

    from resight.gallery.adding import Described

    rng, n = np.random.default_rng(0), 5000
    names = [f"{i:05d}.png" for i in range(n)]
    persons = np.array([f"person {i % 1000:04d}" for i in range(n)])
    given = Sightings(np.array(names), persons, np.array([f"c{i % 4}" for i in range(n)]))
    gallery = Gallery.create(tmp_path / "large", model())
    vectors = rng.normal(size=(n, 48)).astype(np.float32)
    gallery.add(given, described=Described(vectors, "stripes-1"), imageless=True, batch_size=1000)
    view = gallery.view
    begin = perf_counter()
    people(view)
    first = perf_counter() - begin
    begin = perf_counter()
    for _ in range(10):
        assert people(view, "person 00", order="seen")[1] == 100
    assert (perf_counter() - begin) / 10 < max(first, 0.05)
