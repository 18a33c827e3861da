"""Rooms import downwards only: docs/architecture.md says which may import which."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import resight

SOURCE = Path(resight.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
# A string that is nothing but a module's name, with or without "resight." and ":Class".
NAME = re.compile(r"(?:resight\.)?([a-z_]\w*(?:\.[a-z_]\w*)*)(?::\w+)?")


def allowed_imports() -> dict[str, set[str]]:
    """Room -> rooms it may import, from the table on the page; each row adds to those above."""
    rows = re.findall(r"^\| `([\w./]+)` \|.*\|([^|]*)\|$", PAGE.read_text("utf-8"), re.M)
    table = {name.removesuffix("/").removesuffix(".py"): cells for name, cells in rows}
    return {room: set(re.findall(r"`(\w+)`", cells)) for room, cells in table.items()}


def room_of(module: str) -> str:
    """The first name below ``resight``: a folder, or a file beside the folders."""
    return module.split(".")[1] if "." in module else "__init__"


def is_module(name: str, source: Path) -> bool:
    place = source.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def named_modules(file: Path, source: Path = SOURCE) -> Iterator[tuple[int, str]]:
    """Every module of the package that a file imports or names in a string, with its line."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                below = inside.removeprefix("resight.")
                yield node.lineno, inside if is_module(below, source) else str(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = NAME.fullmatch(node.value)
            # A bare word such as "features" is an ordinary string; a dotted one names a module.
            if match and "." in node.value and is_module(match[1], source):
                yield node.lineno, f"resight.{match[1]}"


def wrong_arrows(source: Path = SOURCE) -> list[str]:
    """List imports and names that point from a room to one it may not know."""
    allowed = allowed_imports()
    found = []
    for file in sorted(source.rglob("*.py")):
        own = file.relative_to(source).with_suffix("").parts[0]
        for line, module in named_modules(file, source):
            if not module.startswith("resight"):
                continue
            other = room_of(module)
            if other != own and other not in allowed.get(own, set()):
                found.append(f"{file.relative_to(source)}:{line}: {own} -> {other} ({module})")
    return found


def test_no_arrow_points_backwards():
    assert wrong_arrows() == []


def test_every_room_is_on_the_page():
    parts = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert parts - {"__pycache__", "py"} == set(allowed_imports())


def test_the_page_itself_has_no_cycle():
    allowed = {room: set(others) for room, others in allowed_imports().items()}
    while allowed:
        bottom = {room for room, others in allowed.items() if not others & allowed.keys()}
        assert bottom, f"these rooms import each other: {sorted(allowed)}"
        allowed = {room: others for room, others in allowed.items() if room not in bottom}


@pytest.mark.parametrize(
    "planted",
    [
        "from resight.experiments.runner import Plan",
        "def later():\n    import resight.experiments.evaluate",
        "from resight import experiments",
        'HOME = "resight.experiments.runner"',
        'HOME = "experiments.runner:Plan"',
    ],
)
def test_a_planted_arrow_is_found(tmp_path, planted):
    for name in ("gallery/toy.py", "experiments/runner.py", "experiments/evaluate.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "experiments/__init__.py").write_text("")
    (tmp_path / "gallery/toy.py").write_text(planted + "\n")
    (complaint,) = wrong_arrows(tmp_path)
    assert complaint.startswith("gallery/toy.py:")
    assert "gallery -> experiments" in complaint
