"""Write the committed split files from the published ones.

    python scripts/make_splits.py PATH_TO_PUBLISHED_SPLITS

The folder holds cuhk01_m1.json and cuhk01_m2.json (rows [file, person, camera], camera -1 = not
used), grid.json and prid450s.json (lists of test ids). Only people and picture numbers are kept:
what the protocol needs, and facts.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from resight._files import atomic_write
from resight.protocols.published import SCHEMA

HOME = Path(__file__).resolve().parents[1] / "src" / "resight" / "datasets" / "splits"
CUHK01_SOURCE = "the 10 splits of the k-XQDA paper's authors (Efficient-Kernel-XQDA, MIT licence)"


def main() -> None:
    """Write all files and their checksums."""
    if len(sys.argv) != 2:
        sys.exit("usage: python scripts/make_splits.py PATH_TO_PUBLISHED_SPLITS")
    given = Path(sys.argv[1])
    single, multi, grid, prid450s = (
        json.loads((given / f"{name}.json").read_text())
        for name in ("cuhk01_m1", "cuhk01_m2", "grid", "prid450s")
    )
    contents = {
        "cuhk01-multi-shot": document(971, CUHK01_SOURCE, [people_only(s, 971) for s in multi]),
        "cuhk01-single-shot": document(971, CUHK01_SOURCE, [single_shot(s, 971) for s in single]),
        "grid": document(250, "folds of ahangchen/TrackViz", [ids(s, 250) for s in grid]),
        "prid450s": document(450, "test ids of levyfan/bow", [ids(s, 450) for s in prid450s]),
    }
    sums = ""
    for name, content in contents.items():
        with atomic_write(HOME / f"{name}.json") as stream:
            stream.write(content)
        sums += f"{sha256(content).hexdigest()}  {name}.json\n"
    with atomic_write(HOME / "SHA256SUMS", "w") as stream:
        stream.write(sums)


def document(people: int, source: str, splits: list[dict[str, Any]]) -> bytes:
    """One split a line, so that a difference between versions can be read."""
    lines = ",\n".join(json.dumps(split, separators=(",", ":")) for split in splits)
    head = f'"schema": {json.dumps(SCHEMA)},\n"source": {json.dumps(source)},\n"people": {people}'
    return f'{{{head},\n"splits": [\n{lines}\n]}}\n'.encode()


def ids(split: dict[str, list[int]], people: int) -> dict[str, Any]:
    """Take a split given as ids: everybody is on exactly one side."""
    require(sorted(split["train_ids"] + split["test_ids"]) == list(range(1, people + 1)))
    return {"test": sorted(split["test_ids"])}


def people_only(split: dict[str, list[Any]], people: int) -> dict[str, Any]:
    """Take a split given as rows, of which all pictures are used."""
    sides = [{row[1] for row in split[side]} for side in ("train", "test")]
    require(sorted([*sides[0], *sides[1]]) == list(range(1, people + 1)))
    require(all(row[2] == camera_of(row[0]) for side in ("train", "test") for row in split[side]))
    return {"test": sorted(sides[1])}


def single_shot(split: dict[str, list[Any]], people: int) -> dict[str, Any]:
    """Keep the first camera-A picture in row order and the one used camera-B picture."""
    sides = [{row[1] for row in split[side]} for side in ("train", "test")]
    require(sorted([*sides[0], *sides[1]]) == list(range(1, people + 1)))
    require(all(row[2] == camera_of(row[0]) for row in split["train"]))
    query: dict[int, str] = {}
    gallery: dict[int, str] = {}
    for file, person, camera in split["test"]:
        require(int(file[:4]) == person and camera in (camera_of(file), -1))
        if camera == 1:
            query.setdefault(person, file[6])
        elif camera == 2:
            require(person not in gallery)
            gallery[person] = file[6]
    test = sorted(sides[1])
    require(set(query) == set(gallery) == set(test))
    return {
        "test": test,
        "query": "".join(query[person] for person in test),
        "gallery": "".join(gallery[person] for person in test),
    }


def camera_of(file: str) -> int:
    """Pictures 1 and 2 of a person are from camera 1 (A), 3 and 4 from camera 2 (B)."""
    return 1 if file[6] in "12" else 2


def require(fact: bool) -> None:
    """Stop at the first thing that is not as described."""
    if not fact:
        sys.exit("the published splits are not what this script expects; nothing was written")


if __name__ == "__main__":
    main()
