"""Tell whether two tables of sightings show the same pictures of the same people."""

from __future__ import annotations

from pathlib import Path

from resight._files import digest_of, digest_of_file
from resight.datasets.sightings import Sightings


def fingerprint(sightings: Sightings) -> str:
    """Fingerprint of file contents, file names and labels.

    Contents, not sizes: a picture that was edited or re-encoded in place must be noticed, and
    reading a thousand crops takes a fraction of a second. Row order, the folder and the layout in
    which the files lie do not matter. A missing file counts as such and does not stop the rest.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    boxes = [""] * len(sightings) if sightings.boxes is None else sightings.boxes.tolist()
    labels = zip(
        sightings.cameras.tolist(),
        sightings.persons.tolist(),
        sightings.roles.tolist(),
        sightings.sequences.tolist(),
        sightings.sites.tolist(),
        map(repr, sightings.times.tolist()),
        map(str, boxes),
        strict=True,
    )
    files = sightings.pictures()
    contents = {file: _contents(file) for file in set(files)}
    rows = sorted(
        digest_of(*label, file.name, contents[file])
        for label, file in zip(labels, files, strict=True)
    )
    return digest_of(*rows)


def _contents(file: Path) -> str:
    try:
        return digest_of_file(file)
    except OSError:
        return "missing"
