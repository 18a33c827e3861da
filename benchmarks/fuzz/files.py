"""Forged files: whatever resight reads, damaged, nested, inflated or pretending to be another."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.fuzz import Case, Verdict
from benchmarks.fuzz import forged_data as data
from benchmarks.fuzz import forged_texts as texts
from benchmarks.fuzz.forged_models import forged_models
from benchmarks.fuzz.material import Material
from benchmarks.fuzz.running import run_line


def galleries(m: Material) -> Iterator[tuple[str, Callable[[Path], list[str]]]]:
    """Backups whose documents are forged."""
    content = Path(m("backup.sqlite")).read_bytes()
    with sqlite3.connect(m("backup.sqlite")) as connection:
        manifest = json.loads(
            connection.execute("SELECT content FROM documents WHERE name='manifest'").fetchone()[0]
        )
    changes: dict[str, list[Any]] = {
        "history": [[], None, 7, [{}], [{"number": "x"}]],
        "width": [None, "text", -1],
        "schema": [None, "resight.gallery/99"],
        "descriptor": [None, 7],
        "stored": ["float8"],
        "nonsense": [1],
    }
    documents = {
        f"{key} {value}": json.dumps({**manifest, key: value}).encode()
        for key, values in changes.items()
        for value in values
    }
    documents |= {"deep": texts.DEEP.encode(), "none": b"", "binary": b"\xff\0", "a list": b"[]"}

    for name, document in documents.items():

        def write(folder: Path, document: bytes = document) -> list[str]:
            file = folder / "forged.sqlite"
            file.write_bytes(content)
            with sqlite3.connect(file) as connection:
                connection.execute(
                    "UPDATE documents SET content = ? WHERE name = 'manifest'", (document,)
                )
            connection.close()
            return ["gallery", "restore", str(file), str(folder / "restored")]

        yield f"a gallery's manifest: {name}", write
    for name, damaged in (("half", content[: len(content) // 2]), ("junk", b"\xaa" * 5000)):

        def damage(folder: Path, damaged: bytes = damaged) -> list[str]:
            (folder / "forged.sqlite").write_bytes(damaged)
            return ["gallery", "restore", str(folder / "forged.sqlite"), str(folder / "restored")]

        yield f"a backup that is {name}", damage


def cases(m: Material) -> list[Case]:
    """Return all forged files, each with the command that reads it."""
    readers: dict[str, tuple[dict[str, bytes], str, list[str]]] = {
        "an image": (data.images(), "a.png", ["search", m("gallery"), "FILE"]),
        "vectors": (
            data.arrays(),
            "v.npy",
            ["evaluate", m("vectors.csv"), "--jobs", "1", "--features", "FILE"],
        ),
        "an archive": (
            data.archives(),
            "v.npz",
            ["evaluate", m("vectors.csv"), "--jobs", "1", "--features", "FILE"],
        ),
        "a table": (texts.tables(), "t.csv", ["data", "check", "FILE"]),
        "splits": (
            texts.splits(),
            "s.json",
            ["evaluate", "--jobs", "1", "--features", m("vectors.npy"), "--splits", "FILE"],
        ),
        "settings": (texts.settings(), "c.toml", ["extract", m("people"), "--config", "FILE"]),
        "a result": (texts.results(), "result.json", ["report", "."]),
    }
    made: list[tuple[str, Callable[[Path], list[str]]]] = []
    for what, (contents, file, words) in readers.items():
        for name, content in contents.items():

            def write(
                folder: Path, file: str = file, content: bytes = content, words: list[str] = words
            ) -> list[str]:
                (folder / file).write_bytes(content)
                return [str(folder / file) if word == "FILE" else word for word in words]

            made.append((f"{what}: {name}", write))
    made += galleries(m)
    made += forged_models(m)
    return [Case("forged files", name, lambda write=write: _read(write)) for name, write in made]  # type: ignore[misc]


def _read(write: Callable[[Path], list[str]]) -> Verdict:
    return run_line(write(Path.cwd()))
