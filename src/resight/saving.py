"""Model files: a folder with safetensors and a JSON manifest, never pickle.

Loading runs no code of the file: the manifest names classes from a fixed list, arrays come from
safetensors, everything else is plain JSON. Digests of both parts make damage visible. The name of
the tensor file carries its digest, so that replacing the manifest switches to a new model at once.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from resight._files import atomic_folder, atomic_write, digest_of
from resight._progress import log
from resight._version import __version__
from resight.errors import InputError, StoreError

SCHEMA = "resight.model/1"
MANIFEST = "manifest.json"

# Where each class that may stand in a model file lives.
_CLASSES = {
    "AutoKXQDA": "resight.tuning.auto",
    "BlockNormalizer": "resight.learners.normalizer",
    "Calibration": "resight.evaluation.calibration",
    "Euclidean": "resight.learners.euclidean",
    "ITML": "resight.learners.itml",
    "KISSME": "resight.learners.kissme",
    "KXQDA": "resight.learners.kxqda",
    "Kernel": "resight.kernels",
    "KernelKISSME": "resight.learners.kernel_kissme",
    "KernelLFDA": "resight.learners.kernel_lfda",
    "KernelMFA": "resight.learners.kernel_mfa",
    "KernelNFST": "resight.learners.kernel_nfst",
    "LFDA": "resight.learners.lfda",
    "LMNN": "resight.learners.lmnn",
    "MFA": "resight.learners.mfa",
    "MLAPG": "resight.learners.mlapg",
    "Model": "resight.models.model",
    "NFST": "resight.learners.nfst",
    "XQDA": "resight.learners.xqda",
}

Self = TypeVar("Self", bound="SavableMixin")


class SavableMixin:
    """Gives a class `save`; `resight.load` gives the object back."""

    def save(self: Self, path: str | Path) -> Self:
        """Write this object as a model folder, atomically: an old one stays until the end."""
        folder = Path(path)
        if folder.exists() and not (folder / MANIFEST).is_file():
            raise InputError(
                f"{folder} exists and is not a model folder, so nothing was written; choose "
                "another path"
            )
        tensors: dict[str, np.ndarray] = {}
        state = _encode(self, "", tensors)
        data = _tensors_to_bytes(tensors)
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


def load(path: str | Path) -> Any:
    """Load a model folder written by ``save``.

    Raises
    ------
    StoreError
        If the folder is missing, not a model, damaged, or written by a newer format.
    """
    folder = Path(path)
    log.debug("loading model %s", folder)
    manifest = _read_manifest(folder)
    file = folder / _tensors_name(manifest)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise StoreError(
            f"model {folder}: {file.name} cannot be read ({error.strerror})"
        ) from error
    if digest_of(data) != manifest["tensors_digest"]:
        raise StoreError(f"model {folder}: {file.name} is damaged (its digest differs); fit again")
    from safetensors.numpy import load as tensors_from_bytes

    return _decode(manifest["state"], tensors_from_bytes(data), folder)


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


def _tensors_name(manifest: dict[str, Any]) -> str:
    return f"tensors-{manifest['tensors_digest']}.safetensors"


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not (folder / MANIFEST).is_file():
        raise StoreError(f"{folder} is not a model folder: there is no {MANIFEST} in it")
    text = (folder / MANIFEST).read_bytes()
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"model {folder}: {MANIFEST} is damaged; fit again") from error
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != SCHEMA:
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


def _tensors_to_bytes(tensors: dict[str, np.ndarray]) -> bytes:
    from safetensors.numpy import save as tensors_to_bytes

    return bytes(tensors_to_bytes({k: np.ascontiguousarray(v) for k, v in tensors.items()}))


def _encode(value: Any, key: str, tensors: dict[str, np.ndarray]) -> Any:
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
        items = [_encode(item, f"{key}.{i}", tensors) for i, item in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": items}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"dict": {k: _encode(v, f"{key}.{k}", tensors) for k, v in value.items()}}
    name = type(value).__name__
    if name in _CLASSES and _CLASSES[name] == type(value).__module__:
        state = {k: _encode(v, f"{key}.{k}", tensors) for k, v in vars(value).items()}
        return {"class": name, "state": state}
    raise InputError(
        f"cannot save {key.lstrip('.') or name}: a {name} is code, not data. A learner with a "
        "function as kernel must be saved with kernel='precomputed' instead"
    )


def _encode_array(array: np.ndarray, key: str, tensors: dict[str, np.ndarray]) -> Any:
    if array.dtype.kind in "fiub":
        tensors[key] = array
        return {"tensor": key}
    items = array.tolist()
    if array.dtype.kind in "UO" and all(isinstance(item, (str, int)) for item in items):
        return {"labels": items, "dtype": array.dtype.str if array.dtype.kind == "U" else "object"}
    raise InputError(f"cannot save {key}: arrays of {array.dtype} are not supported as labels")


def _decode(value: Any, tensors: dict[str, np.ndarray], folder: Path) -> Any:
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float.fromhex(value["float"])
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "labels" in value:
        return np.array(value["labels"], dtype=value["dtype"])
    if "list" in value:
        return [_decode(item, tensors, folder) for item in value["list"]]
    if "tuple" in value:
        return tuple(_decode(item, tensors, folder) for item in value["tuple"])
    if "dict" in value:
        return {k: _decode(v, tensors, folder) for k, v in value["dict"].items()}
    name = value.get("class")
    if name not in _CLASSES:
        raise StoreError(f"model {folder} holds a {name!r}, which this resight does not know")
    cls = getattr(import_module(_CLASSES[name]), name)
    restored = cls.__new__(cls)
    restored.__dict__.update({k: _decode(v, tensors, folder) for k, v in value["state"].items()})
    return restored
