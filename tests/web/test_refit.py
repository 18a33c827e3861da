from __future__ import annotations

from typing import Any

import pytest

from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.jobs import Worker
from resight.gallery.log import latest
from resight.gallery.manifest import trained_on

JSON = {"Accept": "application/json"}


@pytest.fixture(autouse=True)
def two_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fold chooses a setting: two are enough for what is tested here."""
    monkeypatch.setattr("resight.gallery.teaching._FOLDS", 2)


def work(client: Any) -> None:
    """Do what waits, as the worker of a server does."""
    while Worker(client.app.state.site.jobs).work_once():
        pass


def teach_some(client: Any, gallery: Gallery, demo: Any, csrf: str, n: int = 6) -> None:
    for a, b in demo.unlabelled_pairs(gallery)[:n]:
        client.post("/teach", data={"kind": "same", "a": a, "b": b, "csrf": csrf})


def test_refit_measures_replaces_and_goes_back(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    assert "Confirm matches of at least 2 people" in client.get("/refit.json").json()["missing"]
    teach_some(client, gallery, demo, csrf)
    like = demo.unlabelled_pairs(gallery)[0][0]
    before = client.get(f"/search.json?like={like}").json()
    assert client.get("/refit.json").json()["missing"] is None

    assert client.post("/jobs/improve", data={"csrf": csrf}, headers=JSON).status_code == 200
    work(client)
    state = client.get("/refit.json").json()
    assert state["status"] in ("ready", "worse")  # on 12 questions: noise may decide
    low, high = state["gain"]
    assert low <= state["after"] - state["before"] <= high
    assert client.get(f"/search.json?like={like}").json() == before  # nothing is adopted yet
    client.post("/jobs/rebuild", data={"csrf": csrf})
    work(client)
    figures = state
    state = client.get("/refit.json").json()
    assert state["status"] == "done"
    assert state["can_undo"]
    assert [one["state"] for one in state["models"]] == ["used before", "in use"]
    assert state["models"][1]["after"] == state["after"] == figures["after"]
    assert client.get("/refit").text.count("people)") == 1  # what the new one reached
    assert 0 <= state["before"] <= 100
    assert 0 <= state["after"] <= 100
    after = client.get(f"/search.json?like={like}").json()
    assert after["model"] != before["model"]
    assert [h["distance"] for h in after["hits"]] != [h["distance"] for h in before["hits"]]
    assert len(trained_on(gallery.engine, gallery.view.manifest.current.number)) == 36 + 12

    assert client.post("/refit/undo", data={"csrf": csrf}).headers["location"] == "/refit"
    assert client.get(f"/search.json?like={like}").json() == before
    assert check(gallery.uri).clean
    logged = {entry["what"] for entry in latest(gallery.engine, 99)}
    assert {"same", "start improve", "start rebuild", "model adopted", "undo model"} <= logged


def test_a_second_refit_compares_with_the_first(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    from resight.gallery.teaching import adopt, refit

    teach_some(client, gallery, demo, csrf, 4)
    adopt(gallery, refit(gallery))
    teach_some(client, gallery, demo, csrf, 4)
    second = refit(gallery)
    assert second.people == 8
    assert second.queries >= 16


def test_a_refit_without_enough_labels_changes_nothing(
    client: Any, gallery: Gallery, csrf: str
) -> None:
    client.post("/jobs/improve", data={"csrf": csrf})
    work(client)
    state = client.get("/refit.json").json()
    assert state["status"] == "failed"
    assert "Confirm matches" in state["words"]
    assert gallery.view.manifest.current.number == 1


def test_a_broken_refit_says_so_and_changes_nothing(
    client: Any, gallery: Gallery, demo: Any, csrf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from resight import AutoKXQDA

    teach_some(client, gallery, demo, csrf)

    def broken(*args: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(AutoKXQDA, "fit", broken)
    client.post("/jobs/improve", data={"csrf": csrf})
    work(client)
    state = client.get("/refit.json").json()
    assert (state["status"], state["words"]) == (
        "failed",
        "retraining failed; the current model is unchanged",
    )
    assert gallery.view.manifest.current.number == 1


def test_nothing_to_go_back_to(client: Any, csrf: str) -> None:
    answer = client.post("/refit/undo", data={"csrf": csrf}, headers=JSON)
    assert answer.status_code == 422
    assert "no earlier model" in answer.json()["error"]
