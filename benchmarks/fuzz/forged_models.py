"""Model folders whose digests are right and whose contents are not."""

from __future__ import annotations

import copy
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from benchmarks.fuzz.material import Material
from resight._files import digest_of
from resight.saving import MANIFEST, _manifest_bytes, _manifest_digest

Manifest = dict[str, Any]
Tensors = dict[str, np.ndarray]
Write = Callable[[Path], list[str]]
_POPEN = {"class": "Popen", "version": 1, "state": {}}
OTHERS: tuple[Any, ...] = (
    *(None, "text", -1, [], {}),
    *({"list": [1]}, {"tensor": "nothing"}, {"float": "nan"}, _POPEN),
)


def sign(folder: Path, manifest: Manifest, data: bytes) -> None:
    """Write a model whose digests fit."""
    for old in folder.glob("tensors-*"):
        old.unlink()
    manifest = {**manifest, "tensors_digest": digest_of(data)}
    manifest["digest"] = _manifest_digest(manifest)
    (folder / f"tensors-{manifest['tensors_digest']}.safetensors").write_bytes(data)
    (folder / MANIFEST).write_bytes(_manifest_bytes(manifest))


def forged_models(m: Material) -> Iterator[tuple[str, Write]]:
    """Yield what is wrong and a function that writes it and names the command that reads it."""
    source = Path(m("model"))
    manifest = json.loads((source / MANIFEST).read_bytes())
    [file] = source.glob("tensors-*")
    data = file.read_bytes()
    command = ["explain", "forged", m.image, m.image]

    def model(change: Callable[[Manifest, Tensors], bytes | None]) -> Write:
        def write(folder: Path) -> list[str]:
            shutil.copytree(source, folder / "forged")
            changed, tensors = copy.deepcopy(manifest), load(data)
            content = change(changed, tensors)
            sign(folder / "forged", changed, save(tensors) if content is None else content)
            return command

        return write

    def bare(content: bytes) -> Write:
        def write(folder: Path) -> list[str]:
            shutil.copytree(source, folder / "forged")
            (folder / "forged" / MANIFEST).write_bytes(content)
            return command

        return write

    for name, change in _of_tensors(load(data)).items():
        yield f"a model: {name}", model(change)
    for name, change in _of_state(manifest).items():
        yield f"a model: {name}", model(change)
    for name, content in (("deep", b"[" * 100_000), ("not text", b"\xff" * 99), ("a list", b"[]"),
                          ("nothing", b""), ("of nan", b'{"schema": NaN}')):  # fmt: skip
        yield f"a model: manifest {name}", bare(content)
    for name, raw in _raw_tensors().items():
        yield f"a model: {name}", model(lambda _, __, raw=raw: raw)  # type: ignore[misc]


def _raw_tensors() -> dict[str, bytes]:
    def framed(header: bytes, length: int | None = None) -> bytes:
        return struct.pack("<Q", len(header) if length is None else length) + header

    huge = b'{"a":{"dtype":"F64","shape":[1000000000000],"data_offsets":[0,8000000000000]}}'
    return {
        "tensors of junk": b"\xaa" * 999,
        "tensors of nothing": b"",
        "tensors with a header of 2^63": framed(b"{}", 2**63),
        "tensors with a deep header": framed(b"[" * 50_000),
        "tensors of 8 TB": framed(huge),
        "tensors without any": framed(b"{}"),
    }


def _of_tensors(tensors: Tensors) -> dict[str, Callable[[Manifest, Tensors], None]]:
    """Every array that embedding needs: of nan, of another size, of another type, missing."""
    changes: dict[str, Callable[[Manifest, Tensors], None]] = {}
    for key, array in tensors.items():
        if array.dtype.kind != "f":
            continue
        worse = {
            "of nan": np.full_like(array, np.nan),
            "of inf": np.full_like(array, np.inf),
            "missing": None,
        }
        if array.ndim == 2:
            worse |= {"transposed": array.T.copy(), "too narrow": array[:, :-1].copy(),
                      "flat": array.ravel()}  # fmt: skip
        for name, value in worse.items():

            def change(_: Manifest, found: Tensors, key: str = key, value: Any = value) -> None:
                found.pop(key)
                if value is not None:
                    found[key] = value

            changes[f"{key} {name}"] = change
    return changes


def _of_state(manifest: Manifest) -> dict[str, Callable[[Manifest, Tensors], None]]:
    """Parts of the state that nothing works without, replaced by something else."""

    def at(path: str, value: Any) -> Callable[[Manifest, Tensors], None]:
        def change(document: Manifest, _: Tensors) -> None:
            *way, last = path.split("/")
            for step in way:
                document = document[step]
            document[last] = value

        return change

    bombs = {
        "labels of 400 MB each": {"labels": ["a"] * 1000, "dtype": "<U100000000"},
        "labels of no type": {"labels": ["a"], "dtype": "nonsense"},
        "labels of void": {"labels": ["a"], "dtype": "V100000000"},
        "labels that are none": {"labels": 7, "dtype": "<U1"},
        "labels of lists": {"labels": [[["a"]]], "dtype": "object"},
    }
    learner = "state/state/learner"
    changes = {f"persons {name}": at(f"{learner}/state/X_fit_", v) for name, v in bombs.items()}
    for part in ("state", "state/state", learner, f"{learner}/state", f"{learner}/state/kernel_",
                 f"{learner}/state/X_fit_", f"{learner}/state/coef_"):  # fmt: skip
        changes |= {f"{part} = {value}": at(part, value) for value in OTHERS}
    versions: tuple[Any, ...] = (99, "x", None, -1, 1.5, [])
    classes: tuple[Any, ...] = ("Popen", "../x", None, 7, [], "BlockNormalizer", "Calibration")
    for part in ("state", learner):
        changes |= {
            f"{part} of version {value!r}": at(f"{part}/version", value) for value in versions
        }
        changes |= {f"{part} of class {value!r}": at(f"{part}/class", value) for value in classes}
    width = f"{learner}/state/n_features_in_"
    changes |= {f"width {value}": at(width, value) for value in (0, -1, 10**12, 10**30, "x", None)}
    changes["descriptors that are none"] = at("state/state/descriptors", {"tuple": ["nonsense"]})
    changes["descriptors of a number"] = at("state/state/descriptors", 7)
    return changes
