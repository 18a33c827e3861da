"""Model files: a folder with safetensors and a JSON manifest, never pickle.

Every class that may stand in a model file says what of it is saved, with a version. Arrays go to
safetensors, everything else is plain JSON. Digests of both parts make damage visible. The name of
the tensor file carries its digest, so that replacing the manifest switches to a new model at once.
`resight.models.files` knows the classes and makes objects of what is read here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from resight._files import atomic_folder, atomic_write, digest_of
from resight._progress import log
from resight._version import __version__
from resight.errors import InputError, StoreError
from resight.validation import parse_json, read_bytes

SCHEMA = "resight.model/2"
RAW_SCHEMA = "resight.model/1"  # of resight 0.1: all attributes as they were, state of version 0
MANIFEST = "manifest.json"
MAX_TENSORS = 2**36  # bytes; more than a machine that fits models has
_DTYPES = {"BOOL": "?"}  # by their names in safetensors files
_DTYPES |= {f"{kind}{8 * n}": f"<{kind.lower()}{n}" for kind in "FIU" for n in (1, 2, 4, 8)}
_MAX_LABELS = 2**30  # characters of an array of labels, all as wide as the longest

Self = TypeVar("Self", bound="SavableMixin")
Tensors = dict[str, np.ndarray]
Get = Callable[[str], bytes | memoryview]  # reads a file of a model by its name


class SavableMixin:
    """A class whose objects can be saved; `resight.load` gives them back.

    What is saved are the constructor's parameters, kept as attributes of the same names, and the
    attributes that the class and its bases list in `learned`. A class that changes either raises
    its `state_version` and teaches `migrate` to read what the versions before it wrote.
    """

    state_version: ClassVar[int]  # stated by every class itself, not inherited
    learned: ClassVar[str] = ""  # names of attributes besides the constructor's parameters

    @classmethod
    def migrate(cls, state: dict[str, Any], version: int) -> dict[str, Any]:
        """Turn the state that an older version wrote (0: resight 0.1) into that of this version."""
        return state

    @classmethod
    def from_state(cls: type[Self], state: dict[str, Any]) -> Self:
        """Make an object of what was saved of it."""
        parameters = signature(cls).parameters
        made = cls(**{name: value for name, value in state.items() if name in parameters})
        for name in state.keys() - parameters.keys():
            setattr(made, name, state[name])
        return made

    @classmethod
    def state_names(cls) -> list[str]:
        """Names of everything that may be saved."""
        learned = [name for one in cls.__mro__ for name in vars(one).get("learned", "").split()]
        return [*signature(cls).parameters, *learned]

    def save(self: Self, path: str | Path) -> Self:
        """Write this object as a model folder, atomically: an old one stays until the end."""
        from safetensors.numpy import save as tensors_to_bytes

        folder = Path(path)
        if folder.exists() and not (folder / MANIFEST).is_file():
            raise InputError(
                f"{folder} exists and is not a model folder, so nothing was written; choose "
                "another path"
            )
        tensors: Tensors = {}
        state = encode(self, "", tensors)
        data = bytes(tensors_to_bytes({k: np.ascontiguousarray(v) for k, v in tensors.items()}))
        manifest = {
            "schema": SCHEMA,
            "versions": {"resight": __version__, "numpy": np.__version__},
            "state": state,
            "tensors_digest": digest_of(data),
        }
        manifest["digest"] = _manifest_digest(manifest)
        if folder.exists():
            _write(folder, manifest, data)
        else:
            with atomic_folder(folder) as part:
                _write(part, manifest, data)
        return self


def _write(folder: Path, manifest: dict[str, Any], data: bytes) -> None:
    """Write tensors, then the manifest, whose arrival makes the model; then clear old tensors."""
    current = _tensors_name(manifest)
    with atomic_write(folder / current) as stream:
        stream.write(data)
    with atomic_write(folder / MANIFEST) as stream:
        stream.write(_manifest_bytes(manifest))
    for file in folder.glob("tensors-*.safetensors"):
        if file.name != current:
            file.unlink()


def read(folder: Path) -> tuple[Any, Tensors]:
    """Return the state and the arrays of a model folder, unless they are damaged."""
    log.debug("loading model %s", folder)
    if not (folder / MANIFEST).is_file():
        raise StoreError(f"{folder} is not a model folder: there is no {MANIFEST} in it")
    return read_parts(lambda name: read_bytes(folder / name, MAX_TENSORS), folder)


def read_parts(get: Get, where: object) -> tuple[Any, Tensors]:
    """Return state and arrays of a model; `get` reads its files by name, errors say `where`."""
    manifest = _read_manifest(get, where)
    name = _tensors_name(manifest)
    try:
        data = get(name)
    except InputError as error:
        raise StoreError(f"model {where}: {error}") from error
    if digest_of(data) != manifest["tensors_digest"]:
        raise StoreError(f"model {where}: {name} is damaged (its digest differs); fit again")
    tensors = _tensors(data)
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise ValueError(f"{name.lstrip('.')} contains NaN or infinite values")
    return manifest["state"], tensors


def _tensors(data: bytes | memoryview) -> Tensors:
    """Return the arrays of a safetensors file as views of its bytes: models may be large."""
    start = 8 + int.from_bytes(data[:8], "little")
    entries = parse_json(bytes(data[8:start]))
    entries.pop("__metadata__", None)
    arrays = {}
    for name, entry in entries.items():
        begin, end = entry["data_offsets"]
        content = memoryview(data)[start + begin : start + end]
        arrays[name] = np.frombuffer(content, _DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def _tensors_name(manifest: dict[str, Any]) -> str:
    return f"tensors-{manifest['tensors_digest']}.safetensors"


def _read_manifest(get: Get, folder: object) -> dict[str, Any]:
    try:
        text = bytes(get(MANIFEST))
        manifest = parse_json(text)
    except ValueError as error:
        raise StoreError(f"model {folder}: {MANIFEST} is damaged; fit again") from error
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema not in (SCHEMA, RAW_SCHEMA):
        raise StoreError(
            f"{folder} is not a model that resight {__version__} reads: its {MANIFEST} has format "
            f"{schema!r}, not {SCHEMA!r}. If a newer resight wrote it, update; else fit again"
        )
    # Byte by byte: even a change that JSON does not mind means that the disk is failing.
    if manifest.get("digest") != _manifest_digest(manifest) or text != _manifest_bytes(manifest):
        raise StoreError(f"model {folder}: {MANIFEST} is damaged (its digest differs); fit again")
    return manifest


def _manifest_bytes(manifest: dict[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()


def _manifest_digest(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return digest_of(json.dumps(rest, sort_keys=True))


def encode(value: Any, key: str, tensors: Tensors) -> Any:
    """Turn a value into JSON; arrays go to `tensors` under their path."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return {"float": float(value).hex()}
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, np.ndarray):
        return _encode_array(value, key, tensors)
    if isinstance(value, (list, tuple)):
        items = [encode(item, f"{key}.{i}", tensors) for i, item in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": items}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"dict": {k: encode(v, f"{key}.{k}", tensors) for k, v in value.items()}}
    kind = type(value)
    if isinstance(value, SavableMixin) and "state_version" in vars(kind):
        names = [name for name in kind.state_names() if hasattr(value, name)]
        state = {name: encode(getattr(value, name), f"{key}.{name}", tensors) for name in names}
        return {"class": kind.__name__, "version": kind.state_version, "state": state}
    raise InputError(
        f"cannot save {key.lstrip('.') or kind.__name__}: a {kind.__name__} is code, not data. A "
        "learner with a function as kernel must be saved with kernel='precomputed' instead"
    )


def _encode_array(array: np.ndarray, key: str, tensors: Tensors) -> Any:
    if array.dtype.kind in "fiub":
        tensors[key] = array
        return {"tensor": key}
    items = array.tolist()
    if array.dtype.kind in "UO" and all(isinstance(item, (str, int)) for item in items):
        return {"labels": items, "dtype": array.dtype.str if array.dtype.kind == "U" else "object"}
    raise InputError(f"cannot save {key}: arrays of {array.dtype} are not supported as labels")


def decode(value: Any, tensors: Tensors, restore: Callable[[str, int, dict[str, Any]], Any]) -> Any:
    """Undo `encode`; `restore` makes an object of the name of its class, version and state."""

    def each(items: Mapping[str, Any]) -> dict[str, Any]:
        return {k: decode(v, tensors, restore) for k, v in items.items()}

    if not isinstance(value, dict):
        return value
    if "float" in value:
        if math.isnan(number := float.fromhex(value["float"])):
            raise ValueError("a parameter is NaN")
        return number
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "labels" in value:
        return _decode_labels(value["labels"], value["dtype"])
    if "list" in value:
        return [decode(item, tensors, restore) for item in value["list"]]
    if "tuple" in value:
        return tuple(decode(item, tensors, restore) for item in value["tuple"])
    if "dict" in value:
        return each(value["dict"])
    return restore(value["class"], value.get("version", 0), each(value["state"]))


def _decode_labels(items: list[Any], dtype: str) -> np.ndarray:
    """Make an array of labels as wide as the longest of them, whatever the file asks for."""
    if not isinstance(items, list) or not all(isinstance(item, (str, int)) for item in items):
        raise ValueError("labels must be a list of text and whole numbers")
    if dtype == "object":
        return np.array(items, dtype=object)
    longest = max((len(str(item)) for item in items), default=1)
    width = int(dtype[2:]) if re.fullmatch(r"[<>]U[0-9]{1,9}", dtype) else 0
    if width < longest or max(1, len(items)) * width > _MAX_LABELS:
        raise ValueError(f"{len(items)} labels cannot have the type {dtype!r}")
    return np.array(items, dtype=dtype)
