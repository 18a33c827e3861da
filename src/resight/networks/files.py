"""The files of a network: weights kept outside, digests, and copies that reached a worker."""

from __future__ import annotations

import mmap
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path

from resight._files import digest_of, digest_of_file
from resight.errors import InputError

# How ONNX (protobuf) writes the entry "location" of weights that are kept in another file: its key,
# the length of its value, and the value.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])", re.DOTALL)

_received: dict[str, tuple[Path, tempfile.TemporaryDirectory[str]]] = {}


def network_files(file: Path) -> list[Path]:
    """List the file itself and those beside it that hold its weights, if it keeps them outside."""
    if not file.is_file() or not file.stat().st_size:
        return [file]
    return [file, *(file.parent / name for name in _weights(*_state(file)))]


def digest_of_network(file: Path) -> str:
    """Digest of a network with all its weights, read a piece at a time."""
    if not file.is_file():
        raise InputError(f"no network {file}; give the path of an .onnx file")
    files = network_files(file)
    for other in files:
        if not other.is_file():
            raise InputError(
                f"{file} keeps its weights in {other.name}, which is missing; copy it beside the "
                "network, or export the network into one file"
            )
    known = [_digest(*_state(one)) for one in files]
    return known[0] if len(known) == 1 else digest_of(*known)


def can_be_found(file: Path, digest: str) -> bool:
    """Tell whether this process can read the network with this digest."""
    try:
        return find_network(file, digest).is_file()
    except InputError:
        return False


def receive(digest: str, contents: Mapping[str, bytes]) -> Path:
    """Keep the files of a network that was sent here, until this process ends."""
    if digest not in _received:
        folder = tempfile.TemporaryDirectory(prefix="resight-network-", ignore_cleanup_errors=True)
        for name, content in contents.items():
            (Path(folder.name) / name).write_bytes(content)
        _received[digest] = Path(folder.name) / next(iter(contents)), folder
    return _received[digest][0]


def packed(file: Path, digest: str) -> Callable[[], Path]:
    """Return a call of `receive` that carries a network's files to another machine."""
    return partial(receive, digest, {one.name: one.read_bytes() for one in network_files(file)})


def find_network(file: Path, digest: str) -> Path:
    """Return where the network with this digest is: in its place, received, or in this folder."""
    received = [_received[digest][0]] if digest in _received else []
    places = dict.fromkeys([file, *received, Path.cwd() / file.name])
    there = [place for place in places if place.is_file()]
    for place in there:
        if digest_of_network(place) == digest:
            return place
    if there:
        raise InputError(
            f"{there[0]} is not the network that was used before: it has other contents (digest "
            f"{digest_of_network(there[0])[:12]} instead of {digest[:12]}). Put the old file back, "
            "or fit a new model with the new one"
        )
    raise InputError(
        f"the network {file.name} (digest {digest[:12]}) is neither at {file} nor in this folder; "
        "copy the file to one of them"
    )


def _state(file: Path) -> tuple[str, int, int]:
    """Name, date and size: what was found out about a file holds until one of them changes."""
    found = file.stat()
    return str(file), found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)
def _digest(file: str, modified: int, size: int) -> str:
    return digest_of_file(file)


@lru_cache(maxsize=64)
def _weights(file: str, modified: int, size: int) -> tuple[str, ...]:
    with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = [data[m.end() : m.end() + m[1][0]] for m in _LOCATION.finditer(data)]
    return tuple(name.decode() for name in dict.fromkeys(found))
