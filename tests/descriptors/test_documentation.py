"""The code in docs/descriptors.md runs, and says what it promises."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from resight.descriptors import DESCRIPTORS, descriptor

PAGE = Path(__file__).resolve().parents[2] / "docs" / "descriptors.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_examples_run(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(BLOCKS[number], names)
    for code, said in re.findall(r"^(\S.*?)  +# '(.*)'$", BLOCKS[number], re.M):
        assert str(eval(code, names)) == said
    for code, said in re.findall(r"^(\S.*?\.shape)  +# (\(.*?\))", BLOCKS[number], re.M):
        assert str(eval(code, names)) == said


def test_the_table_has_every_descriptor_with_its_width() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in DESCRIPTORS:
        assert re.search(rf"\| `{name}` \|.*\| {descriptor(name).n_features:,} \|", text)


def test_every_picture_is_there() -> None:
    for name in re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / name).stat().st_size < 120_000


@pytest.mark.parametrize(
    "module", ["descriptors", "descriptors.lomo", "descriptors.whos", "descriptors.gog"]
)
def test_examples_in_docstrings(module: str) -> None:
    result = doctest.testmod(import_module(f"resight.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
