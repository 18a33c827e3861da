"""Every page and its JSON twin, as a browser without JavaScript sees them."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from resight.gallery import Filter, Gallery, Hits
from resight.gallery.searching import Search
from resight.gallery.sharing import Steps

START = 1.7e9


def test_browse(client: Any, gallery: Gallery) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.text.count('class="pick"') == 48  # a page of sightings
    assert "Page 1 of 2" in page.text
    assert "90 sightings" in page.text
    twin = client.get("/index.json?page=2").json()
    assert (twin["total"], twin["pages"], len(twin["sightings"])) == (90, 2, 42)
    known = client.get("/index.json?known=yes&camera=camera-2").json()
    assert known["total"] == 12
    assert {one["camera"] for one in known["sightings"]} == {"camera-2"}
    assert client.get("/index.json?known=no").json()["total"] == 54


def test_search_and_its_twin(client: Any, gallery: Gallery) -> None:
    like = str(gallery.view.table.ids[0])
    own = str(gallery.view.table.cameras[0])
    expected = gallery.search_like(like, 24, Filter(exclude_cameras=(own,)))
    twin = client.get(f"/search.json?like={like}&others=1").json()
    assert [hit["id"] for hit in twin["hits"]] == [hit.id for hit in expected]
    page = client.get(f"/search?like={like}&others=1").text
    assert re.findall(r'class="card" data-id="(\w+)"', page) == [hit.id for hit in expected]


def test_an_incomplete_answer_says_so(
    client: Any, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    like = str(gallery.view.table.ids[0])
    assert client.get(f"/search.json?like={like}").json()["missing"] == ""
    assert "Incomplete" not in client.get(f"/search?like={like}").text
    steps, said = Search.steps, "5 sightings were not searched"

    def marked(*given: Any) -> Steps[list[Hits]]:
        found = yield from steps(*given)
        for hits in found:
            hits.missing = said
        return found

    monkeypatch.setattr(Search, "steps", marked)
    assert client.get(f"/search.json?like={like}").json()["missing"] == said
    assert f"<strong>Incomplete:</strong> {said}." in client.get(f"/search?like={like}").text


def test_filters_live_in_the_address(client: Any, gallery: Gallery) -> None:
    like = str(gallery.view.table.ids[0])
    address = f"like={like}&camera=camera-2&after=2023-11-14T22:43:20&before={START + 3600}&k=500"
    hits = client.get(f"/search.json?{address}").json()["hits"]
    table = gallery.view.table
    inside = (table.cameras == "camera-2") & (table.times >= START + 1800)
    inside &= (table.times <= START + 3600) & (table.ids != like)
    assert {hit["id"] for hit in hits} == set(table.ids[inside].tolist())
    page = client.get(f"/search?{address}").text
    assert 'value="camera-2" checked' in page
    assert 'name="k" type="number" min="1" max="500" value="500"' in page


def test_filters_that_leave_nothing_offer_to_widen(client: Any, gallery: Gallery) -> None:
    like = str(gallery.view.table.ids[0])
    page = client.get(f"/search?like={like}&camera=camera-2&after=2030-01-01").text
    assert "No results match these filters" in page
    links = dict(re.findall(r'<li><a href="([^"]+)">(any \w+)</a>', page))
    assert sorted(links.values()) == ["any camera", "any time"]
    wider = {words: client.get(unescape(address)).text for address, words in links.items()}
    assert "No results match" in wider["any camera"]
    assert 'class="card" data-id' in wider["any time"]


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/search", 422, "nothing to search for"),
        ("/search?like=nobody", 404, "not in the gallery"),
        ("/search?upload=gone", 404, "upload the image again"),
        ("/search?like={like}&k=0", 422, "greater than or equal to 1"),
        ("/search?like={like}&k=many", 422, "valid integer"),
        ("/search?like={like}&camera=camera-7", 422, "did you mean"),
        ("/search?like={like}&after=noon", 422, "is not a valid time"),
        ("/search?like={like}&after=9&before=3", 422, "later than"),
        ("/person?name=Nobody", 404, "no person named"),
        ("/nowhere", 404, "page not found"),
    ],
)
def test_bad_addresses_are_explained(
    client: Any, gallery: Gallery, address: str, status: int, words: str
) -> None:
    address = address.format(like=gallery.view.table.ids[0])
    page = client.get(address)
    assert page.status_code == status
    assert words in unescape(page.text)
    if status == 422 and ("camera=" in address or "after=" in address):
        field = "camera" if "camera=" in address else "before" if "before=" in address else "after"
        assert f'class="wrong" id="wrong-{field}"' in page.text  # beside the field
        assert client.get(address.replace("?", ".json?", 1)).json()["field"] == field
    assert 'href="/people"' in page.text  # the navigation stays
    if address != "/nowhere":
        twin = client.get(address.replace("?", ".json?", 1) if "?" in address else "/search.json")
        assert twin.status_code == status
        assert words in twin.json()["error"]


def test_person_page(client: Any, gallery: Gallery) -> None:
    page = client.get("/person?name=0003").text
    assert page.count("<circle") == 3
    assert "3 sightings by 3 cameras" in page
    twin = client.get("/person.json?name=0003").json()
    assert [one["camera"] for one in twin["sightings"]] == ["camera-1", "camera-2", "camera-3"]
    assert [one["time"] for one in twin["sightings"]] == sorted(
        one["time"] for one in twin["sightings"]
    )


def test_images(client: Any, gallery: Gallery) -> None:
    key = str(gallery.view.table.ids[0])
    image = client.get(f"/image/{key}")
    assert image.content == gallery.image(key)
    assert image.headers["content-type"] == "image/png"
    assert client.get("/image/nobody").status_code == 422


def test_the_log_says_who_saw_what(client: Any, gallery: Gallery) -> None:
    like = str(gallery.view.table.ids[0])
    client.get(f"/image/{like}")
    found = client.get(f"/search.json?like={like}&camera=camera-2").json()["hits"]
    client.get(f"/image/{found[0]['id']}")  # shown by the search: no entry of its own
    client.get("/person?name=0003")
    client.get("/")
    client.get("/taught")
    client.get("/log")
    entries = client.get("/log.json").json()["entries"]
    whats = ["read log", "answers", "browse", "person", "search", "picture"]
    assert [entry["what"] for entry in entries] == whats
    browse, person, search, picture = entries[2:]
    assert (search["query"], search["who"], search["via"]) == ([like], "anybody", "no login")
    assert search["address"] == "127.0.0.1"
    assert search["filters"] == {"camera": ["camera-2"]}
    assert search["shown"] == [hit["id"] for hit in found]
    assert list(person["persons"]) == ["0003"]
    assert picture["shown"] == [like]
    assert len(browse["shown"]) == 48
    assert like in client.get("/log").text


def test_every_page_has_a_documented_twin(client: Any) -> None:
    document = client.get("/openapi.json").json()
    pages = ("/index", "/search", "/why", "/people", "/person", "/unknowns", "/taught", "/refit")
    for page in (*pages, "/jobs", "/log"):
        operation: dict[str, Any] = document["paths"][f"{page}.json"]["get"]
        assert operation["description"]
        assert "$ref" in operation["responses"]["200"]["content"]["application/json"]["schema"]
    changes = ("/teach", "/undo", "/name", "/none", "/upload", "/keep", "/person/erase")
    unknowns = ("/unknowns/accept", "/unknowns/unsure", "/jobs/add", "/jobs/{kind}")
    for change in ("/people/{verb}", *changes, *unknowns, "/refit/undo"):
        assert document["paths"][change]["post"]["description"]


def test_every_answer_has_an_example(client: Any) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    ours = {name: one for name, one in schemas.items() if "Validation" not in name}
    answers = {name: one for name, one in ours.items() if not name.startswith("Body_")}
    assert len(answers) >= 20
    assert [name for name, one in answers.items() if "examples" not in str(one)] == []


def test_an_empty_gallery_says_how_to_fill_it(tmp_path: Any, gallery: Gallery, serve: Any) -> None:
    from resight.web.app import make_app
    from resight.web.security import Guard

    empty = Gallery.create(tmp_path / "empty", gallery.model)
    with serve(make_app(empty, Guard(empty, login=False))) as client:
        page = client.get("/").text
    assert "This gallery is empty" in page
    assert "resight gallery add" in page


def test_retention_is_kept_by_the_page(client: Any, gallery: Gallery) -> None:
    gallery.retain(1)
    client.get("/")
    assert len(gallery) == 0  # the demo's sightings are of 2023
