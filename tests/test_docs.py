"""README and docs say what is true: code runs, links lead somewhere, help pages are current."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
PUBLIC = (
    "datasets",
    "datasets.video",
    "descriptors",
    "evaluation",
    "explanation",
    "gallery",
    "images",
    "protocols",
    "report",
)


def test_the_code_in_the_readme_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", block],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert 0.5 < float(done.stdout) <= 1.0


def anchors(page: Path) -> set[str]:
    """What GitHub and the site call the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
        if "://" in target or target == "examples/index":  # the latter is made by the site
            continue
        place = page.parent / target if target else page
        assert place.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(place), f"{page.name} links to {target}#{anchor}"


def test_modules_that_pages_name_exist():
    folders = ("src", "benchmarks", "scripts", "tests", "examples")
    files = [str(file) for name in folders for file in (ROOT / name).rglob("*.py")]
    for page in PAGES:
        for named in re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text("utf-8")):
            assert any(file.endswith(f"/{named}") for file in files), f"{page.name}: {named}"


def test_every_page_is_reached_from_the_index():
    reached, todo = set(), ["index"]
    while todo:
        page = todo.pop()
        reached.add(page)
        text = (ROOT / "docs" / f"{page}.md").read_text()
        lists = re.findall(r"```\{toctree\}\n(.*?)```", text, re.S)
        lines = [line for tree in lists for line in tree.split("\n")]
        found = (re.fullmatch(r"(?:.* <)?([\w-]+)>?", line) for line in lines)
        names = [one[1] for one in found if one]
        todo += [name for name in names if name not in reached]
    assert {page.stem for page in PAGES[1:] if page.parent == ROOT / "docs"} == reached


def test_every_public_name_is_in_the_reference():
    docs = runpy.run_path(str(ROOT / "scripts" / "docs.py"))
    named = {name for names in docs["documented"]().values() for name in names}
    packages = ["resight", *(f"resight.{name}" for name in PUBLIC)]
    for package in packages:
        for name in set(import_module(package).__all__) - {"__version__"}:
            there = {f"{package}.{name}", f"resight.{name}"}
            assert there & named, f"{package}.{name} is public; give it a task in scripts/docs.py"
    for name in named:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name


def test_every_package_that_says_what_is_public_is_looked_at():
    files = (ROOT / "src" / "resight").rglob("__init__.py")
    saying = {
        ".".join(file.parent.relative_to(ROOT / "src" / "resight").parts)
        for file in files
        if re.search(r"^__all__ = \[", file.read_text(), re.M)
    }
    assert saying - {""} == set(PUBLIC)


@pytest.mark.parametrize("name", ["02_own_vectors", "07_explanation"])
def test_an_example_runs(name):
    """Two of them; `make examples` runs all."""
    script = [sys.executable, str(ROOT / "scripts" / "run_examples.py"), name]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert f"{name}.py" in done.stdout


def test_there_are_eight_examples_each_with_a_title_and_a_picture():
    files = sorted((ROOT / "examples").glob("[0-9]*.py"))
    assert len(files) >= 8
    for file in files:
        text = file.read_text()
        title, line = re.match(r'"""\n(.*)\n(=+)\n', text).groups()
        assert len(title) == len(line)
        assert "plt.show()" in text, file.name


def test_getting_started_can_be_followed_by_its_command():
    script = runpy.run_path(str(ROOT / "scripts" / "getting_started.py"))
    text = script["PAGE"].read_text()
    for block in script["BLOCK"].findall(text):
        assert block.startswith("$ ")
    assert text.count("*Took ") == len(script["BLOCK"].findall(text))
    assert not re.search(r"/tmp/|/root|/home/", text)  # nothing of a machine


@pytest.mark.parametrize(
    ("file", "written_by"),
    [
        ("COMMANDS", "command_page"),
        ("GUIDE", "guide"),
        ("STUB", "type_stub"),
        ("REFERENCE", "reference"),
        ("README", "readme"),
        ("ADMINISTRATION", "administration"),
    ],
)
def test_what_is_written_from_the_code_is_current(file, written_by):
    docs = runpy.run_path(str(ROOT / "scripts" / "docs.py"))
    assert docs[written_by]() == docs[file].read_text("utf-8"), "run `make docs`"


def test_every_verb_in_the_readme_exists():
    from resight.cli import VERBS

    for verb in re.findall(r"^\$ resight (\w+)", (ROOT / "README.md").read_text(), re.M):
        assert verb in VERBS
