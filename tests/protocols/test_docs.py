"""The split files shown in the docs are real ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from resight.protocols import from_file

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols.md"
EXAMPLES = re.findall(r"```json\n(.*?)```", PAGE.read_text(), flags=re.S)


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_are_understood(table, tmp_path, number):
    people = ("ann", "bob", "cem", "dia")
    sightings = table([(f"cam{c}/{p}_1.png", p, f"cam{c}") for p in people for c in (1, 2)])
    path = tmp_path / "splits.json"
    path.write_text(EXAMPLES[number])
    expected = json.loads(EXAMPLES[number])
    splits = expected["splits"] if isinstance(expected, dict) else expected
    assert len(from_file(path, sightings).splits) == len(splits)
