"""A user's own vectors: the same numbers and labels from every format, clear words otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from resight.errors import InputError
from resight.features.vectors import load_vectors

N, D = 6, 4
X = np.random.default_rng(1).normal(size=(N, D))
PERSONS = np.array(["7", "7", "8", "8", "9", "9"])
CAMERAS = np.array(["1", "2"] * 3)


def write_labels(file: Path, extra: str = "") -> None:
    rows = (f"{person},{camera}{extra}" for person, camera in zip(PERSONS, CAMERAS, strict=True))
    file.write_text("person,camera\n" + "\n".join(rows) + "\n")


def write_npy(folder: Path) -> Path:
    np.save(folder / "v.npy", X)
    write_labels(folder / "v.csv")
    return folder / "v.npy"


def write_npz(folder: Path) -> Path:
    np.savez(folder / "v.npz", features=X, persons=PERSONS, cameras=CAMERAS.astype(int))
    return folder / "v.npz"


def write_csv(folder: Path) -> Path:
    lines = ["camera;a;b;person;c;d"]
    for x, person, camera in zip(X.tolist(), PERSONS, CAMERAS, strict=True):
        lines.append(f"{camera};{x[0]!r};{x[1]!r};{person};{x[2]!r};{x[3]!r}")
    (folder / "v.csv").write_text("\ufeff" + "\r\n".join(lines) + "\r\n")
    return folder / "v.csv"


def write_mat(folder: Path) -> Path:
    ids = PERSONS.astype(float)
    savemat(folder / "v.mat", {"features": X, "ids": ids, "cams": CAMERAS.astype(float)})
    return folder / "v.mat"


def write_mat_by_column(folder: Path) -> Path:
    cells = np.array([*PERSONS], dtype=object)
    savemat(folder / "v.mat", {"descriptors": X.T, "persons": cells, "cameras": CAMERAS})
    return folder / "v.mat"


def write_mat_without_labels(folder: Path) -> Path:
    savemat(folder / "v.mat", {"descriptors": X.T})
    write_labels(folder / "v.csv")
    return folder / "v.mat"


@pytest.mark.parametrize(
    "write",
    [write_npy, write_npz, write_csv, write_mat, write_mat_by_column, write_mat_without_labels],
)
def test_every_format_gives_the_same(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    features, sightings = load_vectors(write(tmp_path))
    np.testing.assert_array_equal(features.features, X)
    np.testing.assert_array_equal(sightings.persons, PERSONS)
    np.testing.assert_array_equal(sightings.cameras, CAMERAS)
    assert sightings.name == "v"
    assert features.blocks == (D,)
    assert features.usable.all()
    assert len(set(sightings.paths.tolist())) == N


def test_npy_stays_on_disk_in_its_own_precision(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", X.astype(np.float32))
    (tmp_path / "labels").mkdir()
    write_labels(tmp_path / "labels" / "other.csv")
    features, sightings = load_vectors(tmp_path / "v.npy", tmp_path / "labels" / "other.csv")
    assert sightings.root == tmp_path / "labels"  # relative paths start where they are written
    assert isinstance(features.features, np.memmap)
    assert features.features.dtype == np.float32


def test_optional_columns(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(
        "person,camera,path,time,role,x\n7,1,a.png,2.5,query,1\n,2,b.png,,distractor,2\n"
        "8,2,c.png,1970-01-01T00:01:00,,3\n"
    )
    features, sightings = load_vectors(tmp_path / "v.csv")
    np.testing.assert_array_equal(features.features, [[1.0], [2.0], [3.0]])
    assert sightings.paths.tolist() == ["a.png", "b.png", "c.png"]
    assert sightings.persons.tolist() == ["7", "", "8"]
    assert sightings.roles.tolist() == ["query", "distractor", ""]
    np.testing.assert_array_equal(sightings.times, [2.5, np.nan, 60.0])


def test_fingerprint_follows_the_contents(tmp_path: Path) -> None:
    first, _ = load_vectors(write_npy(tmp_path))
    assert load_vectors(tmp_path / "v.npy")[0].fingerprint == first.fingerprint
    np.save(tmp_path / "v.npy", X + 1)
    assert load_vectors(tmp_path / "v.npy")[0].fingerprint != first.fingerprint


def refused(file: Path, match: str) -> None:
    with pytest.raises(InputError, match=match):
        load_vectors(file)


def test_files_that_are_none(tmp_path: Path) -> None:
    refused(tmp_path / "v.pkl", r"allowed: \.csv, \.mat, \.npy, \.npz")
    refused(tmp_path / "v.npy", "does not exist; check the path")
    for suffix in (".npy", ".npz", ".mat"):
        (tmp_path / f"v{suffix}").write_bytes(b"nothing of that kind, but long enough to be read")
        refused(tmp_path / f"v{suffix}", "cannot be read")
    (tmp_path / "v.csv").write_bytes(b"\xff\xfe\x00p")
    refused(tmp_path / "v.csv", "not UTF-8")
    (tmp_path / "old.mat").write_bytes(
        b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\0" * 99
    )
    refused(tmp_path / "old.mat", "MATLAB 7.3 file")


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    refused(tmp_path / "v.npy", "cannot be read")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "lacks the column 'person'"),
        ("person,x\n1,2\n", "lacks the column 'camera'"),
        ("person,camera\n1,2\n", "no feature columns"),
        ("person,camera,x\n", "no rows"),
        ("person,camera,x\n1,2,3\n1,2\n", "line 3: 2 values for 3 columns"),
        ("person,camera,x\n1,2,three\n", "could not convert string 'three'"),
        ("person,camera,x\n1,2,nan\n", "row 0 .* NaN or infinite"),
        ("person,camera,x\n1,,3\n", "row 0 .* no camera"),
        ("person,camera,time,x\n1,2,noon,3\n", "'noon' is not a valid time"),
        ("person,camera,role,x\n1,2,boss,3\n", "unknown role 'boss'"),
    ],
)
def test_bad_csv(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "v.csv").write_text(text)
    refused(tmp_path / "v.csv", match)


def test_bad_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", X)
    refused(tmp_path / "v.npy", r"does not say persons and cameras.*v\.csv")
    write_labels(tmp_path / "v.csv")
    for array, match in (
        (X.T, "4 vectors of 6 features, but there are labels for 6"),
        (X[0], r"shape \(4,\)"),
        (X[:, :0], r"shape \(6, 0\)"),
        (X.astype(complex), "complex128"),
        (np.where(X[5, 1] == X, np.inf, X), "row 5 "),
    ):
        np.save(tmp_path / "v.npy", array)
        refused(tmp_path / "v.npy", match)
    np.savez(tmp_path / "v.npz", vectors=X)
    refused(tmp_path / "v.npz", "holds vectors, but no features")
