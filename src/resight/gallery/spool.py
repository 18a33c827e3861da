"""Where uploads wait until a job has added them: a folder of the gallery, within stated limits."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import numpy as np

from resight._files import digest_of
from resight.datasets import load, read_table
from resight.datasets._walk import IMAGE_SUFFIXES
from resight.datasets.folders import of_one_camera
from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.gallery.engines.base import Engine
from resight.validation import MAX_PATH, check_name

MAX_UPLOAD = 2 * 2**30  # bytes of all files of an upload, a video among them
MAX_UNPACKED = 4 * 2**30  # bytes of all files of a zip
MAX_FILES = 50_000
VIDEOS = (".mp4", ".avi", ".mov", ".mkv", ".mpg", ".mpeg", ".m4v", ".webm")


def spool_folder(engine: Engine, given: Path | None = None) -> Path:
    """Return where uploads of a gallery wait: below `given`, in its folder, or on this machine."""
    if given is None and "://" not in engine.uri:
        return Path(engine.uri) / "spool"
    return (given or Path(tempfile.gettempdir())) / f"resight-spool-{digest_of(engine.place)[:12]}"


class Draft:
    """An upload: files are written one after the other, then a job names it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.key, self.files = folder, folder.name, folder / "files"
        self.size = 0  # bytes that were written

    def write(self, name: str, chunks: Iterable[bytes]) -> Path:
        """Stream a file to the disk, under its relative name; refused beyond `MAX_UPLOAD`."""
        path = wanted = self.files / _safe(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(2):  # files picked from several folders may share a name
            if not path.exists():
                break
            path = wanted.with_stem(f"{wanted.stem}-{number}")
        with path.open("wb") as stream:
            for chunk in chunks:
                self.size += len(chunk)
                if self.size > MAX_UPLOAD:
                    self.drop()
                    raise InputError(
                        f"{name} makes the upload larger than {MAX_UPLOAD >> 30} GB, the limit; "
                        "add it in parts, or on the server: resight gallery add"
                    )
                stream.write(chunk)
        return path

    def drop(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def sightings(self, camera: str = "", **video: object) -> list[Sightings]:
        """Read images, folders, zips, a CSV table, videos (cut by `video`); repeatable at will."""
        for file in self._having(".zip"):
            _unpack(file, self.files)
            file.unlink()
        found = [self._cut(file, camera, video) for file in self._having(*VIDEOS)]
        tables = [file for file in self._having(".csv", ".tsv") if file.parent == self.files]
        if len(tables) > 1:
            raise InputError(f"{len(tables)} tables at once; upload one CSV with its images")
        if tables:
            found.append(_within(read_table(tables[0]), self.files))
        elif self._having(*IMAGE_SUFFIXES):
            found.append(of_one_camera(self.files, camera) if camera else load(self.files))
        if not found:
            raise InputError("no image, zip, CSV table or video in this upload; choose some")
        return [one for one in found if len(one)]

    def _having(self, *suffixes: str) -> list[Path]:
        files = sorted(self.files.rglob("*"))
        return [file for file in files if file.is_file() and file.suffix.lower() in suffixes]

    def _cut(self, video: Path, camera: str, how: dict[str, object]) -> Sightings:
        """Cut people out of a video, once."""
        from resight.datasets.video import cut

        if not camera:
            raise InputError(f"which camera recorded {video.name}? Give its name")
        out = self.folder / "crops" / video.stem
        finished = out / ".finished"
        if not finished.is_file():
            out.mkdir(parents=True, exist_ok=True)
            cut(video, out, camera, overwrite=True, **how)  # type: ignore[arg-type]
            finished.touch()
        table = out / "sightings.csv"
        nothing = np.empty(0, str)
        return read_table(table) if table.is_file() else Sightings(nothing, nothing, nothing)


def _safe(name: str) -> PurePosixPath:
    """Return a relative path that stays below its folder."""
    check_name(name, "file name", MAX_PATH)
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name or not path.parts:
        raise InputError(f"file name {name!r}: give a name inside the upload, without '..' and ':'")
    return path


def _within(table: Sightings, folder: Path) -> Sightings:
    """Refuse a table that names files outside of the upload."""
    for path in {*table.paths.tolist()}:
        if not (folder / path).resolve().is_relative_to(folder.resolve()):
            raise InputError(f"the table names {path!r}, which is not part of the upload")
    return table


def _unpack(file: Path, into: Path) -> None:
    """Unpack a zip, refusing too many or too large files."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [one for one in archive.infolist() if _wanted(one)]
            if len(members) > MAX_FILES or sum(one.file_size for one in members) > MAX_UNPACKED:
                raise InputError(
                    f"{file.name} unpacks to more than {MAX_UNPACKED >> 30} GB or {MAX_FILES:,} "
                    "files, the limits; add it in parts, or on the server: resight gallery add"
                )
            for one in members:
                path = into / _safe(one.filename)
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(one) as source, path.open("wb") as target:
                    shutil.copyfileobj(source, target)  # no more than the stated size
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
        raise InputError(f"{file.name} is damaged, encrypted or no zip ({error})") from error


def _wanted(member: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(member.filename).parts
    return not member.is_dir() and parts[:1] != ("__MACOSX",) and not parts[-1].startswith(".")
