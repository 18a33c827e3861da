"""Probabilities and the decision on the page, in its JSON twin, and after a refit."""

from __future__ import annotations

from html import unescape

import pytest

from resight import KXQDA
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery
from resight.gallery.confidence import Presence
from resight.gallery.jobs import Jobs, Worker
from resight.gallery.log import operator
from resight.models.calibrating import add_calibration
from resight.models.model import Model
from resight.web.app import make_app
from resight.web.routes.jobs import state
from resight.web.security import Guard


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """Twenty-six labelled people before two cameras, in the gallery that they trained."""
    folder = tmp_path_factory.mktemp("calibrated")
    drawn = draw_cameras(folder / "cameras", n_people=26, n_cameras=2, seed=9)
    model = Model(("whos-star",), KXQDA())
    features = model.describe(drawn.files())
    model.fit(features, drawn.persons, drawn.cameras)
    assert add_calibration(model, features, drawn.persons, drawn.cameras) is None
    gallery = Gallery.create(folder / "gallery", model)
    gallery.add(drawn)
    yield gallery
    gallery.close()


def test_the_page_and_its_twin_tell_how_sure_they_are(calibrated, serve):
    key = str(calibrated.view.table.ids[0])
    with serve(make_app(calibrated, Guard(calibrated, login=False))) as client:
        answer = client.get("/search.json", params={"like": key}).json()
        assert all(hit["trained"] and hit["probability"] is None for hit in answer["hits"])
        shown = client.get("/search", params={"like": key}).text
        assert "in training data" in shown
        assert "learned distance" not in shown  # that of people who trained the model says nothing
        assert answer["presence"]["compared"] == 51
        assert answer["presence"]["answer"] == "unsure"
        page = client.get("/search", params={"like": key}).text
        assert Presence(**answer["presence"]).words in unescape(page)
        assert "/Presence" in client.get("/openapi.json").text


def test_a_model_without_calibration_says_nothing(client, gallery):
    key = str(gallery.view.table.ids[0])
    assert client.get("/search.json", params={"like": key}).json()["presence"] is None
    assert 'id="presence"' not in client.get("/search", params={"like": key}).text


def test_a_refit_with_too_few_people_says_that_probabilities_are_missing(gallery, demo):
    for a, b in demo.unlabelled_pairs(gallery)[:3]:
        gallery.teach("same", a, b)
    jobs = Jobs(gallery)
    for kind in ("improve", "rebuild"):
        jobs.start(kind, operator())
        Worker(jobs).work_once()
    told = state(jobs)
    assert told.status == "done"
    assert "without probabilities: calibration needs at least 20 people" in told.words
