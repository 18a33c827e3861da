"""Why a result looks like the query: the page, its twin, and what is refused."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from resight.gallery import Gallery


def test_every_result_has_a_link_that_explains_it(client: Any, gallery: Gallery) -> None:
    like = str(gallery.view.table.ids[0])
    page = client.get(f"/search?like={like}&k=3").text
    links = [unescape(link) for link in re.findall(r'class="pick" href="(/why[^"]+)"', page)]
    hits = gallery.search_like(like, 3)
    assert links == [f"/why?like={like}&hit={hit.id}" for hit in hits]
    why = client.get(links[0])
    assert why.status_code == 200
    assert f'href="/image/{like}"' in why.text
    assert f'href="/image/{hits[0].id}"' in why.text
    assert f'href="/search?like={like}"' in why.text


def test_the_twin_adds_up_to_the_distance_of_the_search(client: Any, gallery: Gallery) -> None:
    like = str(gallery.view.table.ids[0])
    hit = gallery.search_like(like, 1)[0]
    twin = client.get(f"/why.json?like={like}&hit={hit.id}").json()
    told = twin["explanation"]
    assert (twin["like"], twin["hit"]["id"]) == (like, hit.id)
    assert told["distance"] == pytest.approx(hit.distance, rel=1e-4)  # float32 in the gallery
    total = sum(part["contribution"] for part in told["parts"])
    assert total == pytest.approx(told["distance"], rel=1e-6)
    assert told["compared"] == "different people"


def test_an_upload_is_explained_too(client: Any, gallery: Gallery, csrf: str, demo: Any) -> None:
    content = Path(demo.sightings.files()[0]).read_bytes()
    sent = client.post(
        "/upload",
        data={"csrf": csrf},
        files={"image": ("me.png", content)},
        headers={"accept": "application/json"},
    )
    key = sent.json()["upload"]
    page = client.get(f"/search?upload={key}&k=1").text
    link = unescape(re.findall(r'class="pick" href="(/why[^"]+)"', page)[0])
    why = client.get(link).text
    assert f'href="/upload/{key}"' in why
    assert "me.png" in why


def test_what_is_gone_or_missing_is_said(client: Any, gallery: Gallery) -> None:
    like = str(gallery.view.table.ids[0])
    for address, status in (
        (f"/why?like={like}&hit=nobody", 404),
        (f"/why?like=nobody&hit={like}", 404),
        (f"/why?upload=gone&hit={like}", 404),
        (f"/why?hit={like}", 422),
        (f"/why?like={like}", 422),
    ):
        answer = client.get(address)
        assert answer.status_code == status
        assert 'class="notice bad"' in answer.text


def test_looks_are_logged(client: Any, gallery: Gallery) -> None:
    a, b = (str(key) for key in gallery.view.table.ids[:2])
    client.get(f"/why?like={a}&hit={b}")
    first = client.get("/log.json").json()["entries"][0]
    assert (first["what"], first["query"], first["shown"]) == ("why", [a], [b])


def test_a_person_of_whom_somebody_asked_why_can_be_forgotten(
    client: Any, gallery: Gallery
) -> None:
    """The log names both sightings and the person that a search was restricted to: all goes."""
    from resight.gallery.forgetting import forget

    view = gallery.view
    mine = view.table.ids[view.persons == "0003"].tolist()
    other = str(view.table.ids[view.persons == "0004"][0])
    assert client.get(f"/why?like={other}&hit={mine[0]}").status_code == 200
    assert client.get(f"/search?like={other}&person=0003").status_code == 200
    assert client.get(f"/search?like={other}&person=0004").status_code == 200
    assert client.get("/person?name=0003").status_code == 200
    assert forget(gallery, "0003").searches == 3
    forgotten, person, kept, *_ = client.get("/log.json").json()["entries"]
    assert forgotten["what"] == "forget"
    assert (list(kept["persons"]), "persons" in person) == (["0004"], False)
