"""Labels and answers leave a gallery in three formats, and each is read back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from PIL import Image

from resight.errors import InputError
from resight.gallery import Gallery
from resight.gallery.exporting import export
from resight.gallery.people import correct

NAME = '=Zoë, "the 1st"\u3000王'


@pytest.fixture
def taught(gallery: Gallery) -> Gallery:
    """A gallery with an awkward name, a split and an answer about two strangers."""
    correct(gallery, "rename", "0001", new=NAME)
    ids = gallery.view.table.ids
    correct(gallery, "split", "0002", ids[gallery.view.persons == "0002"][:2].tolist(), new="Kim")
    a, b = ids[gallery.view.persons == ""][:2].tolist()
    gallery.teach("different", a, b)
    return gallery


def persons(gallery: Gallery) -> dict[str, str]:
    view = gallery.view
    pairs = zip(view.table.ids.tolist(), view.persons.tolist(), strict=True)
    return {key: person for key, person in pairs if person}


def unquoted(text: str) -> str:
    """What a spreadsheet shows: a leading apostrophe says "text"."""
    return text.removeprefix("'")


def test_csv(taught: Gallery) -> None:
    rows = list(csv.DictReader(io.StringIO(export(taught, "csv"))))
    assert {row["id"]: unquoted(row["person"]) for row in rows} == persons(taught)
    assert any(row["person"].startswith("'=Zoë") for row in rows)  # no formula
    view = taught.view
    for row in rows:
        place = view.rows[row["id"]]
        assert row["camera"] == view.table.cameras[place]
        assert row["source"] == view.table.sources[place]
        assert row["time"] == "" or float(row["time"]) == view.table.times[place]
    answers = list(csv.DictReader(io.StringIO(export(taught, "answers.csv"))))
    assert [row["kind"] for row in answers] == ["name", "split", "different"]
    moved = [answers[1]["b"], *answers[1]["more"].split()]
    assert {key for key, person in persons(taught).items() if person == "Kim"} == {*moved}
    assert float(answers[0]["when"]) == view.labels.active[0].when


def test_json(taught: Gallery) -> None:
    document = json.loads(export(taught, "json"))
    assert document["schema"] == "resight.labels/1"
    assert {row["id"]: row["person"] for row in document["labels"]} == persons(taught)
    assert [row["key"] for row in document["answers"]] == [
        entry.key for entry in taught.view.labels.active
    ]
    own = json.loads(export(taught, "json", person="Kim"))
    assert {row["person"] for row in own["labels"]} == {"Kim"}
    assert [row["kind"] for row in own["answers"]] == ["split"]


def test_coco(taught: Gallery, tmp_path: Path) -> None:
    document = json.loads(export(taught, "coco", images=tmp_path / "crops"))
    names = {one["id"]: one["name"] for one in document["categories"]}
    images = {one["id"]: one for one in document["images"]}
    found = {}
    for note in document["annotations"]:
        image = images[note["image_id"]]
        found[Path(image["file_name"]).stem] = names[note["category_id"]]
        with Image.open(tmp_path / "crops" / image["file_name"]) as picture:
            assert picture.size == (image["width"], image["height"])
        assert note["bbox"] == [0, 0, image["width"], image["height"]]
    assert found == persons(taught)
    assert len({one["id"] for one in document["annotations"]}) == len(found)


def test_an_unknown_format_is_named(taught: Gallery) -> None:
    with pytest.raises(InputError, match="unknown format 'xml'"):
        export(taught, "xml")  # type: ignore[arg-type]
