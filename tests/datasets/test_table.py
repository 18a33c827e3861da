"""CSV tables of sightings: what is read, what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.datasets import Sightings, load, read_table, write_table
from resight.datasets.sightings import ROLES
from resight.errors import InputError


def _table(folder: Path, text: str) -> Path:
    file = folder / "mine.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_short_form(tmp_path: Path) -> None:
    sightings = load(_table(tmp_path, "path,person,camera\na.png,7,x\nb.png,,y\n"))
    assert sightings.persons.tolist() == ["7", ""]
    assert sightings.cameras.tolist() == ["x", "y"]
    assert np.isnan(sightings.times).all()
    assert sightings.boxes is None
    assert sightings.root == tmp_path
    assert sightings.name == "mine"


def test_the_long_form_in_any_column_order(tmp_path: Path) -> None:
    text = (
        "\ufeffCamera;PATH;person;w;h;x;y;role;time;sequence\n"
        "c;f.png;p;10;20;1;2;query;2024-05-01T00:00:10Z;s1\n"
        'c;"g;1.png";p;10;20;1;2.4;;12.5;\n'
        "\n"
    )
    sightings = load(_table(tmp_path, text), root="/elsewhere")
    assert sightings.paths.tolist() == ["f.png", "g;1.png"]
    assert sightings.boxes is not None
    assert sightings.boxes.tolist() == [[1, 2, 10, 20]] * 2
    assert sightings.times.tolist() == [1714521610.0, 12.5]
    assert sightings.roles.tolist() == ["query", ""]
    assert sightings.sequences.tolist() == ["s1", ""]
    assert sightings.root == Path("/elsewhere")


def test_times_without_a_zone_are_utc(tmp_path: Path) -> None:
    text = "path,person,camera,time\na,1,x,2024-05-01 00:00:10\nb,1,x,2024-05-01T02:00:10+02:00\n"
    assert load(_table(tmp_path, text)).times.tolist() == [1714521610.0] * 2


_WORD = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            _WORD,
            st.one_of(st.just(""), _WORD),
            _WORD,
            st.one_of(st.just(float("nan")), st.floats(-2e9, 2e11)),
            st.sampled_from(ROLES),
            st.tuples(*[st.integers(1, 999)] * 4),
        ),
        min_size=1,
        unique_by=lambda row: row[0],
    )
)
def test_writing_and_reading_gives_the_same(
    rows: list[tuple], tmp_path_factory: pytest.TempPathFactory
) -> None:
    paths, persons, cameras, times, roles, boxes = (np.array(c) for c in zip(*rows, strict=True))
    before = Sightings(paths, persons, cameras, times=times, roles=roles, boxes=boxes)
    file = tmp_path_factory.mktemp("table") / "t.csv"
    write_table(before, file)
    after = read_table(file)
    for column in ("paths", "persons", "cameras", "times", "roles", "sequences", "sites", "boxes"):
        np.testing.assert_array_equal(getattr(before, column), getattr(after, column))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("path,person,camera\n", "has no rows"),
        ("path,camera\na,b\n", "has no column 'person'"),
        ("path,person,camera,tiem\na,b,c,1\n", "unknown column 'tiem'; did you mean 'time'"),
        ("path,person,camera,path\na,b,c,d\n", "'path' appears twice"),
        ("path,person,camera,x,y\na,b,c,1,2\n", "has only x, y; a box needs"),
        ("path,person,camera\na,b\n", "line 2: 2 values for 3 columns"),
        ("path,person,camera\na,b,c\n,b,c\n", "line 3: path is empty"),
        ("path,person,camera\na,b,\n", "line 2: camera is empty"),
        ("path,person,camera\na,b,c\na,d,c\n", "line 3: 'a' is already in line 2"),
        ("path,person,camera,role\na,b,c,qery\n", "line 2: unknown role 'qery'; did you mean"),
        ("path,person,camera,time\na,b,c,noon\n", "line 2: 'noon' is not a valid time"),
        *[
            (f"path,person,camera,time\na,b,c,{time}\n", f"line 2: '{time}' is not a valid time")
            for time in ("inf", "1e300", "9" * 20, "1700000000000", "-1e10", "nan")
        ],
        ("path,person,camera,x,y,w,h\na,b,c,1,2,3," + "9" * 30 + "\n", "line 2: box x=1 y=2 w=3"),
        ("path,person,camera,x,y,w,h\na,b,c,1,2,3,1e400\n", "line 2: boxes contain NaN or inf"),
        ("path,person,camera\na,\u202eb,c\n", "line 2: person .* direction mark"),
        ("path,person,camera\na,b,c\x07\n", "line 2: camera .* control character"),
        ('path,person,camera\n"a\nb",b,c\n', "line 3: path .* control character"),
        ("path,person,camera\na\0,b,c\n", "line 2"),
        ("path,person,camera\na," + "b" * 256 + ",c\n", "line 2: person .* 256 characters"),
        ("path,person,camera,x,y,w,h\na,b,c,1,2,3,q\n", "line 2: box 1, 2, 3, q"),
        ("path,person,camera,x,y,w,h\na,b,c,1,2,0,5\n", "line 2: box x=1 y=2 w=0 h=5: width and h"),
        ('path,person,camera\n"a,b,c\n', "line 2"),
    ],
)
def test_bad_tables_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load(_table(tmp_path, text))


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes("path,person,camera\nü.png,1,x\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        load(file)
