"""Copying a gallery: backup, restore, conversion."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import warnings
from pathlib import Path

from benchmarks.reliability.child import Child, State, Tell
from benchmarks.reliability.galleries import Create, GalleryOperation, state_of, uri
from resight.gallery.copying import backup, convert, restore

_OLD = Path(__file__).parents[2] / "tests" / "data" / "v0.1" / "gallery.tar.xz"


class Backup(GalleryOperation):
    """Write a gallery into one file."""

    name = "gallery: backup"

    def act(self, place: str, tell: Tell) -> None:
        backup(uri(place), Path(place) / "backup")

    def finish(self, place: str) -> None:
        """Write it, unless it was written."""
        if not (Path(place) / "backup").exists():
            super().finish(place)

    def state(self, place: str) -> State:
        """Read what the backup would restore, and the gallery."""
        kept = {"gallery": state_of(uri(place))}
        if (Path(place) / "backup").exists():
            with tempfile.TemporaryDirectory(dir=Path(place).parent) as folder:
                restore(Path(place) / "backup", Path(folder) / "gallery")
                kept["backup"] = state_of(f"{folder}/gallery")
        return kept

    def leftovers(self, place: str, steps: int) -> list[str]:
        return sorted({file.name for file in Path(place).iterdir()} - {"gallery", "backup"})


class Restore(Create):
    """Make a gallery from a backup."""

    name = "gallery: restore"

    def prepare(self, place: str) -> None:
        self._fill(place, slice(None))
        backup(uri(place), Path(place) / "backup")
        shutil.rmtree(uri(place))

    def act(self, place: str, tell: Tell) -> None:
        restore(Path(place) / "backup", uri(place))


class Convert(Create):
    """Make a gallery from one that resight 0.1 wrote."""

    name = "gallery: convert from 0.1"
    most = 60  # reading with LanceDB takes long, and what is written is what `restore` writes

    def prepare(self, place: str) -> None:
        import lancedb  # noqa: F401  # here and not in every child

        with tarfile.open(_OLD) as archive:
            archive.extractall(place, filter="data")

        warnings.filterwarnings("ignore", "lancedb fork support")  # it is only used in children

    def act(self, place: str, tell: Tell) -> None:
        convert(f"{place}/flow/gallery", uri(place))

    def finish(self, place: str) -> None:
        """Make it, unless it was made; in a child, since lancedb starts threads."""
        if not self.state(place):
            child = Child(lambda tell: self.act(place, tell)).wait()
            if child.end != {"result": None}:
                raise RuntimeError(f"converting again: {child.end}")
