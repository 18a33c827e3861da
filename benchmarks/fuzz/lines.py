"""Bad command lines: every option of every verb with values that it must refuse.

Options are found in the commands themselves, so that a new one is tried too as far as its type
tells what is bad for it; `KINDS` says it of those whose type does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from benchmarks.fuzz import Case
from benchmarks.fuzz.material import DESCRIPTOR, Material
from benchmarks.fuzz.running import run_line
from resight.cli import VERBS

HUGE, NUL = "9" * 30, "a\0b"
LONG = "n" * 5000
NAMES = ("\x07bell", "\u202egnp.exe", "a\nb", "x" * 300, "half\udcff")
NUMBERS = ("", "abc", "nan", "inf", "-inf", "1e400", "-1", "0x10", "1,5", "१e", HUGE + "e300")
TIMES = ("", "noon", "nan", "inf", "1e300", HUGE, "1700000000000", "2024-13-01", "10000-01-01",
         "0001-01-01", "1:2:3:4", "-1e12", "\udcff", NUL)  # fmt: skip
INSIDE_A_FILE = ("text.txt/inside", "/dev/null/inside", NUL, LONG)


def base_lines(m: Material) -> dict[str, list[str]]:
    """Good lines: each command with what it needs. Output goes to the case's own empty folder."""
    describe = ["--descriptor", DESCRIPTOR, "--store", "features", "--jobs", "1"]
    return {
        "demo": ["--out", "out"],
        "data list": [],
        "data info": [m("people")],
        "data check": [m("people")],
        "crop": [
            m("people/camera-1/0001"),
            "--out",
            "out",
            "--camera",
            "door",
            "--boxes",
            m("boxes.csv"),
        ],
        "extract": [m("people"), *describe],
        "fit": [m("people"), "--out", "out", *describe],
        "evaluate": ["--features", m("vectors.npy"), "--jobs", "1"],
        "reproduce": ["table1", "--data", m("empty"), "--out", "out"],
        "report": [m("empty")],
        "gallery create": ["out", "--model", m("model")],
        "gallery add": [m("gallery"), m("people"), "--jobs", "1"],
        "gallery remove": [m("gallery"), "nothing"],
        "gallery info": [m("gallery")],
        "gallery check": [m("gallery")],
        "gallery rebuild": [m("gallery"), "--model", m("model")],
        "gallery backup": [m("gallery"), "out"],
        "gallery restore": [m("backup.sqlite"), "out"],
        "gallery convert": [m("empty"), "out"],
        "gallery forget": [m("gallery"), "nobody"],
        "gallery retain": [m("gallery"), "30"],
        "gallery users": [m("gallery")],
        "gallery log": [m("gallery")],
        "gallery require": [m("gallery")],
        "search": [m("gallery"), m.image],
        "explain": [m("model"), m.image, m.image],
        "serve": [m("gallery"), "--no-browser", "--no-login"],
        "doctor": [],
    }


def bad_values(m: Material, kind: str) -> list[str]:
    """Return what a value of some kind must not be."""
    places = ["", NUL, LONG, m("missing"), m("pipe"), "/dev/zero", "/dev/null"]
    files = [*places, m("empty"), m("empty.file"), m("junk.bin"), m("text.txt")]
    inside = [m(place) if place[:1] not in "/a" else place for place in INSIDE_A_FILE[:2]]
    return {
        "image": [*files, m("pipe.png"), m("zero.png"), m("vectors.npy")],
        "data": [*files, "nonsense", m("pipe.csv"), m("zero.csv"), m("strange"), m("model")],
        "table": [*files, m("pipe.csv"), m("zero.csv"), m("vectors.csv"), m("people")],
        "folder": files,
        "place": [*files, m("people"), m("learner")],
        "model": [*files, m("people"), m("gallery"), m("learner")],
        "gallery": [*files, m("people"), m("model"), "s3://bucket/gallery", "ftp://host/gallery",
                    "postgresql://127.0.0.1:1/db", "postgresql://[::1", "file:///dev/zero"],
        "file": [*files, m("vectors.npy"), m("deep.json")],
        "vectors": [*files, m("pipe.npy"), m("zero.npy"), m.image, m("vectors.txt")],
        "splits": [*files, m("zero.json"), m("deep.json"), m("vectors.npy")],
        "config": [*files[:-3], m("zero.toml"), m("junk.bin"), m("text.txt"), m("deep.json")],
        "out": [*inside, *INSIDE_A_FILE[2:]],
        "new": [*inside, *INSIDE_A_FILE[2:], m("text.txt"), m("people")],
        "number": [*NUMBERS],
        "count": [*NUMBERS, "1.5", HUGE],
        "time": [*TIMES],
        "name": ["", *NAMES],
        "known": ["", "nonsense", *NAMES, NUL],
        "names": ["", "nonsense", "gog+", "+", ",", "gog++lomo", "GOG", *NAMES, NUL],
        "counts": ["", "abc", "-1", "0", "1,", "nan", HUGE, "1.5"],
        "param": ["", "reg", "=", "reg=", "nonsense=1", "kxqda.nonsense=1", "kxqda.reg=nan",
                  "kxqda.reg=-1", "kxqda.reg=abc", "kxqda.reg=" + "[" * 50_000, "kxqda.=1",
                  "nobody.reg=1", "kxqda.reg=1e999", "kxqda.kernel=precomputed", "\udcff=1"],
        "address": ["", "nonsense", "tcp://", "tcp://127.0.0.1:1", "tcp://127.0.0.1:99999999",
                    "ftp://127.0.0.1:1", NUL, "tcp://[::1"],
        "host": ["999.1.1.1", "no such host", "a" * 300, "::1::", "\udcff", NUL, "-1"],
        "flag": ["1", "true", "", "nonsense"],
    }[kind]  # fmt: skip


KINDS = {
    "data": "data", "table": "table", "folder": "new", "image_a": "image",
    "image_b": "image", "images": "image", "model": "model", "place": "gallery",
    "gallery": "gallery", "root": "", "out": "out", "store": "", "html": "out", "page": "out",
    "boxes": "file", "features": "vectors", "splits": "splits", "config": "config",
    "result": "folder", "file": "new", "gallery restore file": "file", "old": "gallery",
    "source": "folder", "camera": "name", "search camera": "known", "exclude_camera": "known",
    "after": "time", "before": "time", "start": "time", "person": "",
    "gallery forget person": "known", "ids": "known", "descriptor": "names", "learner": "names",
    "evaluate descriptor": "",  # not used with --features
    "param": "param", "protocol": "known", "rerank": "known", "detector": "known",
    "people": "counts",
    "cluster": "address", "tables": "known", "add": "model", "days": "number", "host": "host",
    "gallery create place": "new", "gallery restore place": "new", "gallery convert place": "new",
    "only": "", "explain model": "place", "data reproduce": "", "role": "known", "remove": "known",
    "gallery users add": "name", "token": "known", "export": "out", "retain": "number",
    "certfile": "file", "keyfile": "file", "allow_host": "name", "behind_proxy": "host",
}  # fmt: skip


def kind_of(line: str, param: Any) -> str:
    """Say what a value of an option or argument is; empty if nothing is bad for it."""
    if getattr(param, "is_flag", False):
        return "flag"
    for key in (f"{line} {param.name}", f"{param.name} {line}", param.name):
        if key in KINDS:
            return KINDS[key]
    told = str(getattr(param, "type_descriptor", "") or getattr(param, "type", ""))
    found = re.search(r"\b(int|float)", told, re.IGNORECASE)
    return {"int": "count", "float": "number"}.get(found[1].lower(), "") if found else ""


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command by its words, as Typer built it."""
    from resight.cli._commands import command

    for verb in VERBS:
        built = command(verb)
        for name, one in getattr(built, "commands", {"": built}).items():
            yield f"{verb} {name}".strip(), one


def bad_lines(m: Material) -> Iterator[list[str]]:
    """Yield command lines with one bad value each."""
    good = base_lines(m)
    for line, built in commands():
        words = good.get(line, [])
        arguments = [param for param in built.params if param.param_type_name == "argument"]
        for param in built.params:
            kind = kind_of(line, param)
            if not kind or param.name == "help":
                continue
            for value in bad_values(m, kind):
                if param in arguments:
                    place = arguments.index(param)
                    if line == "evaluate" or place >= len(words):
                        continue
                    yield [*line.split(), *words[:place], value, *words[place + 1 :]]
                else:
                    yield [*line.split(), *words, f"{max(param.opts, key=len)}={value}"]
        yield [*line.split(), *words, "--nonsense"]
        yield [*line.split(), *words, "one", "more", "and", "\udcff"]
    for words in ([], ["nonsense"], [""], [NUL], ["\udcff"], ["--nonsense"], ["serve"], ["fit"]):
        yield words


def cases(m: Material) -> list[Case]:
    """Return all bad command lines."""
    return [
        Case("command lines", repr(words)[:300], lambda words=words: run_line(words))  # type: ignore[misc]
        for words in bad_lines(m)
    ]
