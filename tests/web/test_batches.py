"""Searches that come together: one product and one commit, and each gets its own answer."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from resight.gallery import Gallery
from resight.gallery.index import ExactIndex, Nearest, Question
from resight.gallery.log import Writer, log_rows, verify
from resight.gallery.sharing import Steps
from resight.web import batches


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

    def each(index: ExactIndex, questions: list[Question], rows: Any = None) -> list[Nearest]:
        products.append(len(questions) if rows is None else 0)  # few rows are searched alone
        return multiply(index, questions, rows)

    def write(writer: Writer, entries: list[Any]) -> list[None]:
        commits.append(len(entries))
        return commit(writer, entries)

    multiply, commit = ExactIndex.search_each, Writer.write_all
    monkeypatch.setattr(ExactIndex, "search_each", each)
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


def test_what_shares_nothing_has_a_thread_of_its_own(
    client: Any, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = gallery.view.table.ids[:2].tolist()
    expected = client.get(f"/search.json?like={first}").json()["hits"]
    assert gallery.shares_products

    def refuse(_: Any) -> None:
        raise AssertionError("no batch was expected")

    monkeypatch.setattr(batches, "run_together", refuse)
    assert client.get(f"/search.json?like={first}&like={second}").status_code == 200
    gallery._view = None
    gallery.memory_limit = 0  # too large for the memory
    for _ in range(2):
        found = client.get(f"/search.json?like={first}").json()["hits"]
        assert [hit["id"] for hit in found] == [hit["id"] for hit in expected]
        assert not gallery.shares_products


def test_everybody_hears_of_a_batch_that_failed_and_the_next_is_answered(
    client: Any, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"/search.json?like={gallery.view.table.ids[0]}"
    expected = client.get(address).json()

    def broken(_: Any) -> None:
        time.sleep(0.1)
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched, ThreadPoolExecutor(6) as clients:
        patched.setattr(batches, "run_together", broken)
        found = list(clients.map(client.get, [address] * 6))
        assert [answer.status_code for answer in found] == [500] * 6
    assert client.get(address).json() == expected


def test_who_is_alone_does_not_wait_and_nobody_waits_for_long() -> None:
    waits: list[float] = []

    async def asleep(seconds: float) -> None:
        waits.append(seconds)

    async def answered(gallery: Any, count: int) -> list[int]:
        made = batches.RequestBatches(gallery)

        def steps(number: int) -> Steps[int]:
            return number
            yield

        found: list[int] = []
        for n in (1, count, 1):  # alone; together; alone again, when as many were there before
            found += await asyncio.gather(*(made.answer(steps(n)) for n in range(n)))
        return found

    gallery = SimpleNamespace(shares_products=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batches.asyncio, "sleep", asleep)
        assert asyncio.run(answered(gallery, 1)) == [0, 0, 0]
        assert waits == []
        assert asyncio.run(answered(gallery, 5)) == [0, 0, 1, 2, 3, 4, 0]
    assert 0 < len(waits) <= 4
    assert sum(waits) <= 0.02


def test_a_request_that_was_cancelled_leaves_the_others_alone() -> None:
    async def run() -> list[Any]:
        made = batches.RequestBatches(SimpleNamespace(shares_products=True))  # type: ignore[arg-type]

        def steps(number: int) -> Steps[int]:
            time.sleep(0.05)
            return number
            yield

        tasks = [asyncio.create_task(made.answer(steps(n))) for n in range(3)]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, cancelled, third = asyncio.run(run())
    assert (first, third) == (0, 2)
    assert isinstance(cancelled, asyncio.CancelledError)
