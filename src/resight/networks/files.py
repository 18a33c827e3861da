"""The files of a network: weights kept outside, digests, and copies that reached a worker."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

from resight._files import digest_of, digest_of_file
from resight.errors import InputError

# Numbers of fields in onnx.proto, on the way from a file to the names of its other files.
_GRAPH, _INITIALIZER, _EXTERNAL_DATA, _KEY, _VALUE = 7, 5, 13, 1, 2
_BYTES = 2  # protobuf's wire type of texts, bytes and messages
_FIXED = {1: 8, 5: 4}  # lengths of the wire types that have one

_received: dict[str, tuple[Path, tempfile.TemporaryDirectory[str]]] = {}


def network_files(file: Path) -> list[Path]:
    """List the file itself and those beside it that hold its weights, if it keeps them outside."""
    found: dict[str, None] = {}
    if file.is_file() and file.stat().st_size:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as m:
            found = dict.fromkeys(_external_data(m))
    return [file, *(file.parent / name for name in found)]


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
    known = [_digest(str(one), one.stat().st_mtime_ns, one.stat().st_size) for one in files]
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


@lru_cache(maxsize=64)
def _digest(file: str, modified: int, size: int) -> str:
    return digest_of_file(file)


def _external_data(model: mmap.mmap) -> Iterator[str]:
    """Names of other files in the initializers of a graph."""
    try:
        for graph in _fields(model, (0, len(model)), _GRAPH):
            for tensor in _fields(model, graph, _INITIALIZER):
                for entry in _fields(model, tensor, _EXTERNAL_DATA):
                    key, value = (
                        [model[start:stop] for start, stop in _fields(model, entry, number)]
                        for number in (_KEY, _VALUE)
                    )
                    if key == [b"location"] and value:
                        yield value[0].decode()
    except (IndexError, ValueError):  # not an ONNX file, which onnxruntime says better
        return


def _fields(data: mmap.mmap, place: tuple[int, int], wanted: int) -> Iterator[tuple[int, int]]:
    """Places of the fields of one number in a protobuf message, without reading their contents."""
    at, end = place
    while at < end:
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _BYTES:
            length, at = _varint(data, at)
            if number == wanted:
                yield at, at + length
            at += length
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            _, at = _varint(data, at)


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1
