from __future__ import annotations

import csv
import io
from html import unescape
from typing import Any

import pytest

from resight.gallery import Gallery

JSON = {"Accept": "application/json"}


def test_teach_and_undo(client: Any, gallery: Gallery, demo: Any, csrf: str) -> None:
    a, b = demo.unlabelled_pairs(gallery)[0]
    form = {"kind": "same", "a": a, "b": b, "csrf": csrf, "back": f"/search?like={a}"}
    answer = client.post("/teach", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/search?like={a}")
    assert "Same person" in client.get(f"/search?like={a}&k=90").text
    tray = client.get("/taught.json").json()["taught"]
    assert [(one["kind"], one["a"], one["b"]) for one in tray] == [("same", a, b)]
    assert client.get("/taught").text.count("Undo answer") == 1
    assert client.post("/undo", data={"csrf": csrf}, headers=JSON).json()["total"] == 0
    assert client.get("/taught.json").json()["taught"] == []
    nothing = client.post("/undo", data={"csrf": csrf}, headers=JSON)
    assert (nothing.status_code, nothing.json()) == (422, {"error": "nothing to undo"})


def test_undo_of_one_among_several(client: Any, gallery: Gallery, demo: Any, csrf: str) -> None:
    pairs = demo.unlabelled_pairs(gallery)[:3]
    keys = []
    for a, b in pairs:
        form = {"kind": "same", "a": a, "b": b, "csrf": csrf}
        keys.append(client.post("/teach", data=form, headers=JSON).json()["taught"]["key"])
    client.post("/undo", data={"csrf": csrf, "key": keys[1]})
    assert [one["key"] for one in client.get("/taught.json").json()["taught"]] == [keys[2], keys[0]]


def test_a_contradiction_is_refused(client: Any, gallery: Gallery, demo: Any, csrf: str) -> None:
    (a, b), (c, _) = demo.unlabelled_pairs(gallery)[:2]
    client.post("/teach", data={"kind": "different", "a": a, "b": b, "csrf": csrf})
    client.post("/teach", data={"kind": "same", "a": a, "b": c, "csrf": csrf})
    form = {"kind": "same", "a": c, "b": b, "csrf": csrf}
    refused = client.post("/teach", data=form, headers=JSON)
    assert refused.status_code == 422
    assert "already marked as different people" in refused.json()["error"]
    part = client.post("/teach", data=form, headers={"HX-Request": "true"})
    assert part.headers["hx-retarget"] == "#message"
    assert "already marked as different people" in part.text


def test_an_answer_is_changed_where_it_was_given(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    a, b = demo.unlabelled_pairs(gallery)[0]
    form = {"a": a, "b": b, "csrf": csrf}
    for kind, shown in (
        ("same", "Same person"),
        ("different", "Different"),
        ("unsure", "Not sure"),
    ):
        client.post("/teach", data={**form, "kind": kind})
        [hit] = [
            h for h in client.get(f"/search.json?like={a}&k=90").json()["hits"] if h["id"] == b
        ]
        assert hit["verdict"] == kind
        assert f'<span class="badge {kind}">{shown}' in client.get(f"/search?like={a}&k=90").text
        assert [one["kind"] for one in client.get("/taught.json").json()["taught"]] == [kind]
    undo = {"csrf": csrf, "key": hit["answer"], "a": a, "b": b}
    part = client.post("/undo", data=undo, headers={"HX-Request": "true"}).text
    assert part.count('name="kind"') == 3  # the three buttons are back in their place
    assert gallery.view.labels.active == []


def test_a_name_given_to_a_result_joins_who_has_it(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    (a, b), (c, _) = demo.unlabelled_pairs(gallery)[:2]
    client.post("/name", data={"a": a, "person": "Ann", "csrf": csrf})
    client.post("/name", data={"a": b, "person": "Ann", "csrf": csrf})
    assert [gallery.view.labels.person(key) for key in (a, b, c)] == ["Ann", "Ann", ""]


def test_none_of_these_is_a_new_person_by_one_undo(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    a = demo.unlabelled_pairs(gallery)[0][0]
    hits = [hit["id"] for hit in client.get(f"/search.json?like={a}&k=5").json()["hits"]]
    form = {"a": a, "hits": hits, "person": "Zoe", "csrf": csrf}
    answer = client.post("/none", data=form)
    assert gallery.view.labels.person(a) == "Zoe"
    assert all(gallery.view.labels.verdict(a, key) == "different" for key in hits)
    page = client.get(answer.headers["location"]).text
    assert 'class="quiet undo"' in page
    client.post("/undo", data={"csrf": csrf})
    assert gallery.view.labels.active == []


def test_htmx_gets_the_answers_and_the_names(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    a, b = demo.unlabelled_pairs(gallery)[0]
    form = {"kind": "different", "a": a, "b": b, "csrf": csrf}
    part = client.post("/teach", data=form, headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert f'id="verdict-{b}"' in part
    assert "Different person" in part
    assert f'id="who-{b}" hx-swap-oob="true"' in part


MARKUP = "<script>alert('x')</script>"


def test_names_with_markup_are_shown_as_text(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    a, b = demo.unlabelled_pairs(gallery)[0]
    client.post("/teach", data={"kind": "same", "a": a, "b": b, "csrf": csrf})
    name = gallery.view.labels.person(a)
    answer = client.post("/people/rename", data={"name": name, "new": MARKUP, "csrf": csrf})
    page = client.get(answer.headers["location"])
    assert page.status_code == 200
    for address in (answer.headers["location"], f"/search?like={a}&k=90", "/taught", "/?known=yes"):
        text = client.get(address).text
        assert MARKUP not in text
    assert MARKUP in unescape(page.text)
    twin = client.get("/person.json", params={"name": MARKUP}).json()
    assert {one["id"] for one in twin["sightings"]} == {a, b}


@pytest.mark.parametrize("person", ["", " ", "x" * 256, "0001"])
def test_bad_names(client: Any, gallery: Gallery, demo: Any, csrf: str, person: str) -> None:
    a, b = demo.unlabelled_pairs(gallery)[0]
    client.post("/teach", data={"kind": "same", "a": a, "b": b, "csrf": csrf})
    answer = client.post("/name", data={"a": a, "person": person, "csrf": csrf}, headers=JSON)
    assert answer.status_code == 422


def test_export(client: Any, gallery: Gallery, demo: Any, csrf: str) -> None:
    a, b = demo.unlabelled_pairs(gallery)[0]
    client.post("/teach", data={"kind": "same", "a": a, "b": b, "csrf": csrf})
    client.post("/name", data={"a": a, "person": "=HYPERLINK(1)", "csrf": csrf})
    answer = client.get("/labels.csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 36 + 2
    assert {row["person"] for row in rows if row["id"] in (a, b)} == {"'=HYPERLINK(1)"}
    assert "labels.csv" in answer.headers["content-disposition"]
