"""Sources of sightings: published datasets, your own folders and tables, synthetic cameras."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from resight._progress import log
from resight.datasets._walk import images_below, require_folder
from resight.datasets.folders import TABLE, read_folder
from resight.datasets.inspection import fingerprint
from resight.datasets.published import DATASETS, Dataset
from resight.datasets.sightings import Sightings
from resight.datasets.table import read_table, write_table
from resight.errors import InputError, unknown_name

__all__ = [
    "DATASETS",
    "Dataset",
    "Sightings",
    "fingerprint",
    "load",
    "read_folder",
    "read_table",
    "write_table",
]


def load(name_or_path: str | Path, root: str | Path | None = None) -> Sightings:
    """Read sightings: a published dataset by name, or your own folder or CSV table by path.

    Parameters
    ----------
    name_or_path : str or path
        A name in `DATASETS` (then `root` is where it is), a folder, or a CSV file.
    root : str or path, optional
        For a name: the dataset's folder or the folder above it. For a CSV file: where its relative
        paths start.

    Returns
    -------
    Sightings
        Rows in natural order of their paths (CSV: in the order of the file), whatever the disk's.

    Examples
    --------
    >>> load("grid", root="data")  # doctest: +SKIP
    >>> load("my/cameras")  # doctest: +SKIP
    """
    sightings = _load(name_or_path, root)
    log.debug("read %s: %s sightings in %s", sightings.name, f"{len(sightings):,}", sightings.root)
    return sightings


def _load(name_or_path: str | Path, root: str | Path | None) -> Sightings:
    if not isinstance(name_or_path, (str, PathLike)):
        raise InputError(f"{name_or_path!r}: give the name of a dataset, a folder or a CSV table")
    name, path = str(name_or_path), Path(name_or_path)
    if name in DATASETS and (root is not None or not path.exists()):
        if root is None:
            raise InputError(f"where is {name!r}? Give root= (--root), the folder that contains it")
        require_folder(Path(root))
        return DATASETS[name].load(Path(root))
    if path.is_dir():
        if not (path / TABLE).is_file():
            images = images_below(path)
            for dataset in DATASETS.values():
                if dataset.recognises(images):
                    return dataset.load(path)
        return read_folder(path)
    if path.is_file():
        if path.suffix.lower() not in (".csv", ".tsv"):
            raise InputError(f"{name!r} is not a table; give a .csv file or a folder of images")
        return read_table(path, root)
    raise InputError(
        f"{unknown_name('dataset', name, DATASETS)}; no folder or file has that name either"
    )
