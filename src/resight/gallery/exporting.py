"""What was said about the sightings of a gallery, for other programs: CSV, JSON and COCO."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from PIL import Image

from resight._version import __version__
from resight.errors import unknown_name
from resight.gallery.crops import image_type
from resight.gallery.engines.base import or_none
from resight.gallery.gallery import Gallery
from resight.gallery.view import View

Form = Literal["csv", "answers.csv", "json", "coco"]
_BATCH = 256
_LABELS = ("id", "person", "camera", "time", "sequence", "source")
_ANSWERS = ("key", "kind", "a", "b", "more", "person", "who", "when", "waiting")


def export(gallery: Gallery, form: Form, person: str = "", images: Path | None = None) -> str:
    """Write labelled sightings as CSV or COCO, answers as CSV, or both as JSON; of one `person`.

    In COCO each is an image with one annotation, whose category is the person; the crops are
    written to the folder `images` under the names that it states.
    """
    if form not in get_args(Form):
        raise unknown_name("format", form, get_args(Form))
    view = gallery.view
    labels, answers = _labels(view, person), _answers(view, person)
    if form == "json":
        document = {"schema": "resight.labels/1", "labels": labels, "answers": answers}
        return json.dumps(document, ensure_ascii=False, indent=1)
    if form == "coco":
        return json.dumps(_coco(gallery, labels, images), ensure_ascii=False, indent=1)
    if form == "answers.csv":
        return _table(_ANSWERS, [{**one, "more": " ".join(one["more"])} for one in answers])
    return _table(_LABELS, labels)


def _labels(view: View, person: str) -> list[dict[str, Any]]:
    rows = np.flatnonzero(view.persons == person if person else view.persons != "")
    t = view.table
    columns = (t.ids, view.persons, t.cameras, or_none(t.times), t.sequences, t.sources)
    values = zip(*(column[rows].tolist() for column in columns), strict=True)
    return [dict(zip(_LABELS, one, strict=True)) for one in values]


def _answers(view: View, person: str) -> list[dict[str, Any]]:
    found = []
    for entry in (*view.labels.active, *view.labels.waiting):
        if not person or person in {view.labels.person(one) for one in entry.sightings}:
            values = {**asdict(entry), "waiting": entry in view.labels.waiting}
            found.append({name: values[name] for name in _ANSWERS})
    return found


def _table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain(row[name]) for name in columns] for row in rows)
    return buffer.getvalue()


def _plain(value: Any) -> str:
    """Write a value so that spreadsheets do not run a name as a formula."""
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r", "'") else value


def _coco(gallery: Gallery, labels: list[dict[str, Any]], folder: Path | None) -> dict[str, Any]:
    persons = {name: n for n, name in enumerate(sorted({one["person"] for one in labels}), 1)}
    images, annotations = [], []
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(labels), _BATCH):
        part = labels[start : start + _BATCH]
        contents = gallery.engine.fetch([one["id"] for one in part], "image")
        for number, one in enumerate(part, start + 1):
            content = contents[one["id"]]
            kind = (image_type(content) or "image/png").removeprefix("image/")
            name = f"{one['id']}.{kind.replace('jpeg', 'jpg')}"
            if folder is not None:
                (folder / name).write_bytes(content)
            width, height = Image.open(io.BytesIO(content)).size
            about = {"camera": one["camera"], "time": one["time"], "source": one["source"]}
            size = {"width": width, "height": height}
            images.append({"id": number, "file_name": name, **size, **about})
            shown = {"id": number, "image_id": number, "category_id": persons[one["person"]]}
            whole = {"bbox": [0, 0, width, height], "area": width * height, "iscrowd": 0}
            annotations.append({**shown, **whole})
    categories = [{"id": n, "name": name, "supercategory": "person"} for name, n in persons.items()]
    info = {"description": "labelled sightings", "version": __version__}
    return {"info": info, "images": images, "annotations": annotations, "categories": categories}
