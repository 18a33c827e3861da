"""``resight network``: inspect a network of your own before it is used as a descriptor."""

from __future__ import annotations

from pathlib import Path
from timeit import repeat
from typing import TYPE_CHECKING, Any

import typer

from resight.cli._common import Json, answer, option, say

if TYPE_CHECKING:
    from resight.descriptors.network import Network


def describe(
    file: Path = typer.Argument(help="ONNX file"),
    licence: str = option("", "TEXT", "Licence of the network, for its JSON", "none"),
    source: str = option("", "TEXT", "Where it comes from, for its JSON", "none"),
    training_data: str = option("", "TEXT", "What it was trained on, for its JSON", "none"),
    json: Json = False,
) -> None:
    """Show inputs, outputs, preprocessing, vector length and time per image.

    Writes the preprocessing to a JSON of the same name beside the file, unless there is one:
    correct it there if the network was trained otherwise.
    """
    from resight._files import write_json
    from resight.descriptors.network import Network

    made = Network(file)
    notes = {"licence": licence, "source": source, "training_data": training_data}
    document = made.preprocessing_ | {name: text for name, text in notes.items() if text}
    session = made.session
    found = {
        "schema": "resight.network/1",
        "file": str(file),
        "digest": made.digest_,
        "bytes": file.stat().st_size,
        "input": str(session.input),
        "outputs": [str(output) for output in session.outputs],
        "preprocessing": document,
        "n_features": made.n_features,
        "batch": made.batch,
        "ms_per_image": _milliseconds(made),
    }
    beside = file.with_suffix(".json")
    if any(notes.values()) or not beside.exists():
        try:
            write_json(beside, document)
            say(f"wrote {beside}")
        except OSError as error:
            why = f"{error.strerror}); copy the network to a folder of your own"
            say(f"cannot write {beside} ({why}")
    answer(json, found, _as_text(found))


def _milliseconds(made: Network) -> float:
    import numpy as np

    size = (made.batch, *made.preprocessing.size, 3)
    images = list(np.random.default_rng(0).integers(0, 256, size, np.uint8))
    seconds = repeat(lambda: made.describe_many(images), number=1, repeat=5)
    return round(1e3 * min(seconds) / made.batch, 3)


def _as_text(found: dict[str, Any]) -> str:
    rows = {
        "file": f"{found['file']} ({found['bytes'] / 2**20:.1f} MB, digest {found['digest'][:12]})",
        "input": found["input"],
        "outputs": ", ".join(found["outputs"]),
        **{name.replace("_", " "): value or "-" for name, value in found["preprocessing"].items()},
        "features": f"{found['n_features']:,}",
        "time": f"{found['ms_per_image']:.1f} ms an image on one thread, {found['batch']} at once",
    }
    for name, value in rows.items():
        rows[name] = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    return "\n".join(f"{name:<14} {value}" for name, value in rows.items())


COMMANDS = (describe,)
