"""A user's own vectors instead of descriptors: CNN embeddings, published LOMO or GOG files.

======== ==================================================================================
file     what it holds
======== ==================================================================================
``.csv`` a line of column names; ``person`` and ``camera``, if wanted ``path``, ``id`` (a name
         where there is no path), ``time`` (seconds or ISO 8601), ``sequence``, ``role``, ``site``;
         every other column is a feature
``.npy`` an array (n, d); labels lie in a CSV beside it, of the same name or named by `labels`
``.npz`` ``features`` (n, d), ``persons`` (n,), ``cameras`` (n,), if wanted ``paths``,
``.mat`` ``times``, ``sequences``, ``roles``, ``sites``; features may be called ``descriptors``
         or ``X``, persons ``ids``, cameras ``cams``; a ``.mat`` may hold features as (d, n).
         Without persons and cameras, labels lie in a CSV as for ``.npy``
======== ==================================================================================
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of_file
from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.features.rows import Features
from resight.times import parse
from resight.validation import MAX_TEXT, check_file

SUFFIXES = (".csv", ".mat", ".npy", ".npz")
# Columns of a table of sightings: name in a CSV -> name in an array file.
_NAMES = ("person", "camera", "path", "time", "sequence", "role", "site")
LABELS = {name: f"{name}s" for name in _NAMES} | {"id": "names"}
NEEDED = ("person", "camera")
_SYNONYMS = {"descriptors": "features", "X": "features", "ids": "persons", "cams": "cameras"}
_LINE = 2**24  # characters of a header
_MOST = 2**36  # bytes that an archive may unpack to
_SCAN = 1024  # rows looked at together for values that are not finite

Columns = dict[str, NDArray[Any]]


def load_vectors(
    file: str | Path, labels: str | Path | None = None, needs: Sequence[str] = NEEDED
) -> tuple[Features, Sightings]:
    """Read vectors with persons and cameras.

    Parameters
    ----------
    file : path
        ``.csv``, ``.npy``, ``.npz`` or ``.mat``; see the module's table.
    labels : path, optional
        CSV with ``person`` and ``camera`` of every row, where `file` does not hold them. By
        default the CSV of the same name beside `file`.
    needs : sequence of str
        Labels that must be there: a gallery takes unknown people, a query says nothing of itself.

    Returns
    -------
    features : Features
        One part (n, d), float32 or float64 as in the file; ``.npy`` is memory-mapped.
    sightings : Sightings
        One row a vector. Where no paths are given they name file and row.

    Examples
    --------
    >>> features, sightings = load_vectors("resnet50.npy")  # doctest: +SKIP
    """
    path = Path(file)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path.name} is not a file of vectors; allowed: {', '.join(SUFFIXES)}")
    check_file(path)
    try:
        vectors, columns = _read(path, needs)
    except InputError:
        raise
    except Exception as error:  # broken files raise a dozen types
        raise InputError(
            f"{path.name} cannot be read ({error}); save it again as plain arrays of numbers and "
            "text"
        ) from error
    named_in = path
    if labels is not None or not {LABELS[name] for name in needs or NEEDED} <= columns.keys():
        beside = Path(labels) if labels is not None else path.with_suffix(".csv")
        if beside != path and (needs or beside.is_file()):
            if not beside.exists():
                raise InputError(
                    f"{path.name} does not say {'s and '.join(needs)}s, and there is no file "
                    f"{beside}; write a CSV with a line {','.join(needs)} and then one line for "
                    "each vector"
                )
            named_in, columns = beside, _read_labels(check_file(beside, MAX_TEXT), needs)[0]
    count = len(next(iter(columns.values()), vectors))
    vectors = _check_vectors(path, vectors, count)
    features = Features(
        parts=(vectors,),
        descriptors=(path.name,),
        blocks=(vectors.shape[1],),
        fingerprint=digest_of_file(path),
        file=str(path),
    )
    unknown = {"persons": np.full(count, ""), "cameras": np.full(count, "unknown")}
    return features, _sightings(path, {**unknown, **columns}, named_in.parent)


def own_vectors(
    features: Features | str | Path | None, sightings: Sightings | None, to: str
) -> tuple[Features | None, Sightings]:
    """Return own vectors, if any are given, and the sightings: one for each vector.

    A file is read by `load_vectors`; who is shown is by default what it says.
    """
    if features is None:
        if sightings is None:
            raise InputError(
                f"nothing to {to}: give sightings, or features with people and cameras"
            )
        return None, sightings
    if not isinstance(features, Features):
        features, labelled = load_vectors(features)
        sightings = labelled if sightings is None else sightings
    n_rows = len(features.parts[0])
    if sightings is None or len(sightings) != n_rows:
        given = "no" if sightings is None else len(sightings)
        raise InputError(f"{n_rows} vectors, but {given} sightings; give one for each vector")
    return features, sightings


def _read(path: Path, needs: Sequence[str]) -> tuple[NDArray[Any], Columns]:
    """Return features and labels as they stand in a file."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _read_csv(path, needs)
    if suffix == ".npy":
        return np.load(path, mmap_mode="r", allow_pickle=False), {}
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            large = sum(member.file_size for member in archive.zip.infolist())
            if large > _MOST:
                raise InputError(f"{large / 2**30:,.0f} GB when unpacked; save it as .npy")
            return _split(path, dict(archive))
    from scipy.io import loadmat

    try:
        found = loadmat(str(path), chars_as_strings=True)
    except NotImplementedError as error:  # an HDF5 file, which SciPy does not read
        raise InputError(
            f"{path.name} is a MATLAB 7.3 file; save it with save(..., '-v7'), or as .npy or .csv"
        ) from error
    return _split(path, {name: found[name] for name in found if not name.startswith("__")})


def _split(path: Path, found: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], Columns]:
    """Part the arrays of a file into features and labels."""
    arrays = {_SYNONYMS.get(name, name): values for name, values in found.items()}
    if not isinstance(arrays.get("features"), np.ndarray):
        names = ", ".join(sorted(found)) or "nothing"
        raise InputError(
            f"{path.name} holds {names}, but no features; name them features, descriptors or X"
        )
    columns = {name: _flat(arrays[name]) for name in LABELS.values() if name in arrays}
    return arrays["features"], columns


def _flat(values: NDArray[Any]) -> NDArray[Any]:
    flat = np.asarray(values).ravel()
    if flat.dtype == object:  # a cell array: one small array in each cell
        return np.array([str(np.ravel(cell)[0]) if np.size(cell) else "" for cell in flat])
    return flat


def _read_csv(path: Path, needs: Sequence[str]) -> tuple[NDArray[Any], Columns]:
    columns, header, delimiter = _read_labels(path, needs)
    numbers = [index for index, name in enumerate(header) if name not in LABELS]
    if not numbers:
        raise InputError(
            f"{path.name} has no feature columns, only {', '.join(header)}; every column that is "
            f"not one of {', '.join(LABELS)} is taken as a feature"
        )
    try:
        told: Any = {"skiprows": 1, "comments": None, "quotechar": '"', "encoding": "utf-8-sig"}
        vectors = np.loadtxt(path, delimiter=delimiter, usecols=numbers, ndmin=2, **told)
    except ValueError as error:
        raise InputError(f"{path.name}: {error}; features must be numbers") from error
    return vectors, columns


def _read_labels(path: Path, needs: Sequence[str]) -> tuple[Columns, list[str], str]:
    """Return the columns of a CSV that are labels, the names of all columns and the delimiter."""
    rows, line = [], 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            delimiter = max(",;\t", key=stream.readline(_LINE).count)
            stream.seek(0)
            reader = csv.reader(stream, delimiter=delimiter)
            header = [name.strip() for name in next(reader, [])]
            for name in needs:
                if name not in header:
                    shown = ", ".join(header[:8]) or "none"
                    raise InputError(
                        f"{path.name} lacks the column {name!r}; its first line must name the "
                        f"columns (found: {shown})"
                    )
            wanted = [(header.index(name), LABELS[name]) for name in LABELS if name in header]
            for row in filter(None, reader):
                line = reader.line_num
                if len(row) != len(header):
                    raise InputError(
                        f"{path.name} line {line}: {len(row)} values for {len(header)} columns"
                    )
                rows.append([row[index].strip() for index, _ in wanted])
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not UTF-8 text; save it as CSV in UTF-8") from error
    except csv.Error as error:
        raise InputError(f"{path.name}, after line {line}: {error}") from error
    if not rows:
        raise InputError(f"{path.name} has no rows; add one line for each sighting")
    return dict(zip((name for _, name in wanted), np.array(rows).T, strict=True)), header, delimiter


def _check_vectors(path: Path, vectors: NDArray[Any], count: int) -> NDArray[Any]:
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(f"{path.name} holds shape {vectors.shape}; features must be (n, d)")
    if vectors.dtype.kind not in "fiu":
        raise InputError(f"{path.name} holds {vectors.dtype}; features must be real numbers")
    # MATLAB often keeps one vector a column; the number of labels tells which way round it is.
    if path.suffix.lower() == ".mat" and len(vectors) != count == vectors.shape[1]:
        vectors = vectors.T
    if len(vectors) != count:
        raise InputError(
            f"{path.name} holds {len(vectors)} vectors of {vectors.shape[1]} features, but there "
            f"are labels for {count}; give one row per vector and one label per row"
        )
    if vectors.dtype not in (np.float32, np.float64):
        vectors = vectors.astype(np.float64)
    for start in range(0, count, _SCAN):
        bad = ~np.isfinite(vectors[start : start + _SCAN]).all(axis=1)
        if bad.any():
            row = start + int(bad.argmax())
            raise InputError(
                f"{path.name}: row {row} (the first is 0) holds NaN or infinite values; drop that "
                "row and its label, or find out where they come from"
            )
    return vectors


def _sightings(path: Path, columns: Columns, root: Path) -> Sightings:
    count = len(columns["persons"])
    texts: Columns = {
        name: _as_text(values) if name != "times" else _as_seconds(path, values)
        for name, values in columns.items()
    }
    names = texts.pop("names", np.array([f"{path.name}#{row}" for row in range(count)]))
    texts.setdefault("paths", names)
    if (texts["cameras"] == "").any():
        row = int((texts["cameras"] == "").argmax())
        raise InputError(f"{path.name}: row {row} (the first is 0) has no camera; name one")
    return Sightings(**texts, root=root, name=path.stem)


def _as_text(values: NDArray[Any]) -> NDArray[np.str_]:
    if np.issubdtype(values.dtype, np.floating) and (values == np.floor(values)).all():
        values = values.astype(np.int64)  # MATLAB stores whole numbers as doubles
    return np.char.strip(values.astype(str))


def _as_seconds(path: Path, values: NDArray[Any]) -> NDArray[np.float64]:
    texts = [str(value).strip() for value in values.tolist()]
    try:
        return np.array([parse(text) if text not in ("", "nan") else np.nan for text in texts])
    except InputError as error:
        raise InputError(f"{path.name}: {error}, or leave it empty") from None
