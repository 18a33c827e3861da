from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.errors import InputError
from resight.gallery.labels import Entry, Labels

IDS = np.array(list("abcdefgh"))
GIVEN = np.array(["Ann", "Ann", "Bob", "", "", "", "", ""])


def labels(*journal: Entry) -> Labels:
    return Labels(IDS, GIVEN, journal)


def test_given_labels_and_matches_join() -> None:
    known = labels(Entry("same", "a", "d"), Entry("same", "e", "f"), Entry("same", "f", "g"))
    assert known.person("d") == "Ann"
    assert known.person("e") == known.person("f") == known.person("g") == "person e"
    assert known.person("h") == ""
    assert known.taught() == {"person e"}
    assert known.verdict("b", "d") == "same"
    assert known.verdict("a", "c") == "different"  # two known people
    assert known.verdict("a", "h") is None


def test_undo_takes_back_one_entry_and_only_that() -> None:
    first, second = Entry("same", "d", "e"), Entry("same", "e", "f")
    known = labels(first, second, Entry("undo", first.key))
    assert known.person("d") == ""
    assert known.person("e") == known.person("f") != ""
    with pytest.raises(InputError, match="nothing to undo"):
        known.check(Entry("undo", first.key))


def test_verdicts_hold_for_everything_that_is_joined() -> None:
    known = labels(Entry("same", "d", "e"), Entry("different", "e", "f"), Entry("same", "f", "g"))
    assert known.verdict("d", "g") == "different"
    said = known.differing("d", "g")
    assert said is not None
    assert (said.a, said.b) == ("e", "f")
    with pytest.raises(InputError, match="already marked as different people"):
        known.check(Entry("same", "d", "g"))
    with pytest.raises(InputError, match="undo that match first"):
        known.check(Entry("different", "d", "e"))


def test_names() -> None:
    known = labels(Entry("same", "d", "e"), Entry("name", "d", person=" <b>Zoë</b> "))
    assert known.person("e") == "<b>Zoë</b>"
    with pytest.raises(InputError, match="another person has the name 'Bob'"):
        known.check(Entry("name", "d", person="Bob"))
    with pytest.raises(InputError, match="at least 1 character"):
        known.check(Entry("name", "d", person="  "))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Entry("same", "a", "z"), "no sighting 'z'"),
        (Entry("different", "a", "a"), "with itself"),
        (Entry("name", "z", person="x"), "no sighting 'z'"),
    ],
)
def test_nonsense_is_refused(entry: Entry, words: str) -> None:
    with pytest.raises(InputError, match=words):
        labels().check(entry)


def test_entries_about_removed_sightings_have_no_effect() -> None:
    assert labels(Entry("same", "d", "gone")).person("d") == ""


def test_entries_survive_writing() -> None:
    entry = Entry("name", "a", person="Zoë <script>", who="me")
    assert Entry.load(entry.dump()) == entry


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("defgh"), st.sampled_from("defgh")), max_size=12))
def test_persons_are_connected_components(pairs: list[tuple[str, str]]) -> None:
    """Joining is an equivalence: the fold equals reachability over the matches."""
    known = labels(*(Entry("same", a, b) for a, b in pairs))
    reach = {x: {x} for x in "defgh"}
    for _ in range(5):
        for a, b in pairs:
            both = reach[a] | reach[b]
            for x in both:
                reach[x] = both
    for x in "defgh":
        for y in "defgh":
            joined = known.person(x) != "" and known.person(x) == known.person(y)
            told = any(x in pair for pair in pairs)
            assert joined == (told and y in reach[x])
