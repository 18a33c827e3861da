"""People and unknowns: the pages, their twins, and what corrects a person."""

from __future__ import annotations

from html import unescape
from typing import Any

import numpy as np
import pytest

from resight.gallery import Gallery, groups
from resight.gallery.groups import group

JSON = {"Accept": "application/json"}


def correct(client: Any, csrf: str, verb: str, **form: Any) -> Any:
    return client.post(f"/people/{verb}", data={**form, "csrf": csrf}, headers=JSON)


def card(client: Any, name: str) -> dict[str, Any]:
    return dict(client.get("/person.json", params={"name": name}).json()["card"])


def test_the_grid_and_its_twin(client: Any, gallery: Gallery) -> None:
    found = client.get("/people.json", params={"query": "01", "order": "name"}).json()
    assert [one["name"] for one in found["people"]] == ["0001", "0010", "0011", "0012"]
    assert found["people"][1]["sightings"] == 3
    assert found["people"][1]["cameras"] == ["camera-1", "camera-2", "camera-3"]
    page = client.get("/people").text
    assert page.count('class="card wide"') == 12
    assert "3 sightings" in page
    assert "Nobody's name contains" in unescape(client.get("/people?query=xyz").text)


def test_corrections_can_be_undone_from_where_they_were_done(
    client: Any, gallery: Gallery, csrf: str
) -> None:
    ids = gallery.view.table.ids[gallery.view.persons == "0003"].tolist()
    before = gallery.view.persons.tolist()
    acts: list[tuple[str, dict[str, Any]]] = [
        ("rename", {"new": "Ann"}),
        ("merge", {"other": "0004"}),
        ("split", {"sighting": ids[:1], "new": "Ben"}),
        ("detach", {"sighting": ids[:2]}),
        ("cover", {"sighting": ids[2]}),
    ]
    for verb, form in acts:
        answer = client.post(f"/people/{verb}", data={"name": "0003", **form, "csrf": csrf})
        assert answer.status_code == 303, verb
        page = client.get(answer.headers["location"]).text
        assert 'class="quiet undo"' in page, verb
        client.post("/undo", data={"csrf": csrf})
        assert gallery.view.persons.tolist() == before, verb


def test_split_detach_and_cover(client: Any, gallery: Gallery, csrf: str) -> None:
    ids = gallery.view.table.ids[gallery.view.persons == "0003"].tolist()
    correct(client, csrf, "split", name="0003", sighting=ids[:1], new="Ben")
    correct(client, csrf, "detach", name="0003", sighting=ids[1:2])
    assert [gallery.view.labels.person(key) for key in ids] == ["Ben", "", "0003"]
    assert gallery.view.labels.verdict(ids[1], ids[2]) == "different"
    other = gallery.view.table.ids[gallery.view.persons == "0004"].tolist()
    correct(client, csrf, "cover", name="0004", sighting=other[2])
    assert card(client, "0004")["cover"] == other[2]
    wrong = correct(client, csrf, "split", name="0004", sighting=ids)
    assert (wrong.status_code, "is not one of" in wrong.json()["error"]) == (422, True)


def test_the_later_of_two_is_told_and_nothing_is_lost(
    client: Any, gallery: Gallery, csrf: str
) -> None:
    seen = card(client, "0003")["version"]
    assert correct(client, csrf, "rename", name="0003", new="Ann", seen=seen).status_code == 200
    page = client.post(
        "/people/rename", data={"name": "Ann", "new": "Eve", "seen": seen, "csrf": csrf}
    )
    assert page.status_code == 409
    assert "was changed since you opened it" in unescape(page.text)
    assert 'href="/people"' in page.text
    assert "Ann" in gallery.view.named


def test_people_said_to_be_different_are_not_merged(
    client: Any, gallery: Gallery, csrf: str
) -> None:
    view = gallery.view
    a, b = (str(view.table.ids[view.persons == name][0]) for name in ("0003", "0004"))
    gallery.teach("different", a, b)
    refused = correct(client, csrf, "merge", name="0003", other="0004")
    assert refused.status_code == 422
    assert "undo that first" in refused.json()["error"]
    similar = client.get("/person.json?name=0003").json()["similar"]
    assert "0004" not in [one["name"] for one in similar]
    assert len(similar) == 6


NAMES = ("محمد علي", "王小明", "👩🏽‍🚀 Zoë", "x" * 255)


def test_names_of_any_script_and_length(client: Any, gallery: Gallery, csrf: str) -> None:
    for number, name in enumerate(NAMES, 3):
        assert correct(client, csrf, "rename", name=f"{number:04d}", new=name).status_code == 200
        page = client.get("/person", params={"name": name})
        assert page.status_code == 200
        assert f"<bdi>{name}</bdi>" in unescape(page.text)
    assert all(name[:50] in unescape(client.get("/people").text) for name in NAMES)
    assert correct(client, csrf, "rename", name="0001", new="y" * 300).status_code == 422


def test_erasing_says_what_goes_and_asks(client: Any, gallery: Gallery, csrf: str) -> None:
    view = gallery.view
    ids = view.table.ids[view.persons == "0003"].tolist()
    gallery.teach("different", ids[0], str(view.table.ids[view.persons == ""][0]))
    page = client.get("/person/erase?name=0003").text
    assert "3 sightings" in page
    assert "1 answer" in page
    form = {"name": "0003", "csrf": csrf}
    assert client.post("/person/erase", data={**form, "confirm": "3"}).status_code == 422
    assert "0003" in gallery.view.named
    done = client.post("/person/erase", data={**form, "confirm": "0003"})
    assert done.status_code == 200
    assert "3 sightings, 1 answer" in done.text
    assert not {*ids} & {*gallery.view.rows}


# ---- unknowns


def test_nothing_is_proposed_on_a_request(
    client: Any, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups and suggestions are read as the job left them, on every page."""
    group(gallery)

    def computed(*_: Any) -> None:
        raise AssertionError("computed on a request")

    monkeypatch.setattr(groups, "find_groups", computed)
    monkeypatch.setattr(groups, "propose", computed)
    monkeypatch.setattr("resight.gallery.grouping.clusters", computed)
    for path in ("/", "/unknowns", "/people", "/person?name=0003", "/taught", "/refit", "/add"):
        assert client.get(path).status_code == 200, path


def test_before_the_first_grouping_the_page_says_so(client: Any, gallery: Gallery) -> None:
    assert "Looking for groups" in client.get("/unknowns").text
    twin = client.get("/unknowns.json").json()
    assert (twin["group"], twin["open"], twin["unknown"]) == (None, 0, 54)


def test_accept_drop_name_and_not_sure(client: Any, gallery: Gallery, csrf: str) -> None:
    view = gallery.view
    ids = view.table.ids[view.persons == ""].tolist()
    made = [groups.Group(f"g{n}", ids[3 * n : 3 * n + 3], 0.9 - 0.1 * n) for n in range(3)]
    model = view.manifest.current.fingerprint
    groups.Groups(model, len(view.table), "", "hand", made, ids[-2:]).store(gallery.engine)
    first = client.get("/unknowns.json").json()["group"]
    assert (first["key"], first["sightings"]) == ("g0", ids[:3])
    form = {"shown": ids[:3], "sighting": ids[:2], "name": "Ann", "csrf": csrf}
    answer = client.post("/unknowns/accept", data=form)
    assert [gallery.view.labels.person(key) for key in ids[:3]] == ["Ann", "Ann", ""]
    assert gallery.view.labels.verdict(ids[0], ids[2]) == "different"
    page = client.get(answer.headers["location"]).text
    assert "Saved as" in page
    assert f'value="{ids[3]}"' in page  # the next group is there
    client.post("/unknowns/unsure", data={"shown": ids[3:6], "csrf": csrf})
    assert client.get("/unknowns.json").json()["group"]["key"] == "g2"
    assert client.get("/unknowns.json?after=g2").json()["group"]["key"] == "g1"  # comes back last
    client.post("/undo", data={"csrf": csrf})
    client.post("/undo", data={"csrf": csrf})  # both answers of the click at once
    assert gallery.view.labels.active == []
    late = client.post("/unknowns/accept", data={**form, "sighting": []}, headers=JSON)
    assert late.status_code == 422


def test_a_group_that_somebody_named_meanwhile_is_not_overwritten(
    client: Any, gallery: Gallery, csrf: str
) -> None:
    view = gallery.view
    ids = view.table.ids[view.persons == ""][:3].tolist()
    gallery.teach("name", ids[0], person="Ben")
    form = {"sighting": ids, "name": "Ann", "csrf": csrf}
    late = client.post("/unknowns/accept", data=form, headers=JSON)
    assert (late.status_code, "Ben" in late.json()["error"]) == (409, True)
    assert np.count_nonzero(gallery.view.persons == "Ann") == 0
