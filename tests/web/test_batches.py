"""Searches that come together: one product and one commit, and each gets its own answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from resight.gallery import Gallery
from resight.gallery.index import ExactIndex, Nearest, Question
from resight.gallery.log import Writer, log_rows, verify


def test_searches_that_come_together_are_answered_as_alone(
    client: Any, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = gallery.view.table.ids[:12].tolist()
    addresses = [f"/search.json?like={key}&k={5 + n}" for n, key in enumerate(ids)]
    addresses[3] += "&camera=nowhere"
    addresses[5] = "/search.json?like=nobody"
    alone = [client.get(address) for address in addresses]
    assert [answer.status_code for answer in alone] == [200] * 3 + [422, 200, 404] + [200] * 6
    products: list[int] = []
    commits: list[int] = []

    def each(index: ExactIndex, questions: list[Question]) -> list[Nearest]:
        products.append(len(questions))
        return multiply(index, questions)

    def write(writer: Writer, entries: list[Any]) -> list[None]:
        commits.append(len(entries))
        return commit(writer, entries)

    multiply, commit = ExactIndex.each, Writer.write_all
    monkeypatch.setattr(ExactIndex, "each", each)
    monkeypatch.setattr(Writer, "write_all", write)
    with ThreadPoolExecutor(12) as clients:
        for _ in range(3):
            again = list(clients.map(client.get, addresses))
            assert [answer.json() for answer in again] == [answer.json() for answer in alone]
    assert sum(products) == sum(commits) == 30
    assert max(products) > 1
    assert len(commits) < 30
    proof = verify(log_rows(gallery.engine))
    assert (proof.entries, proof.problems) == (40, [])


def test_a_gallery_too_large_for_the_memory_is_searched_without_batches(
    client: Any, gallery: Gallery
) -> None:
    address = f"/search.json?like={gallery.view.table.ids[0]}"
    expected = client.get(address).json()["hits"]
    gallery._view = None
    gallery.memory_limit = 0
    found = client.get(address).json()["hits"]
    assert [hit["id"] for hit in found] == [hit["id"] for hit in expected]
    assert not gallery.in_memory
