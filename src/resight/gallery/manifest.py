"""What a gallery says about itself: its format, its models and its rules."""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from resight._version import __version__
from resight.errors import InputError, StoreError
from resight.evaluation.calibration import Rates
from resight.gallery.engines.base import Engine
from resight.models.files import open_model
from resight.validation import MAX_DAYS, check_count, check_name, check_number, parse_json

if TYPE_CHECKING:
    from resight.gallery.copying import LanceSource

SCHEMA = "resight.gallery/2"
_READ = ("resight.gallery/1", SCHEMA)  # 1 is what resight 0.1 wrote
ERASING = "erasing/"  # documents of what is to be erased
CANDIDATE = "candidate"  # documents of a refitted model that is not used yet
JOBS = "job/"  # documents of jobs
GROUPS = "groups"  # the document of groups of unknown sightings
# The journal of models: what each reached on people held out, whether it is used or not. Later
# entries add to earlier ones; none names sightings or persons, so they outlive the erased.
MODELS = "models"
NAME = "manifest"
Origin = Literal["create", "rebuild", "refit"]
Stored = Literal["float32", "float16", "none"]
DESCRIPTORS: Stored = "float16"  # new galleries; rank 1 moves by less than 0.1, see docs/gallery.md


@dataclass(frozen=True)
class Generation:
    """One model and the embeddings it made."""

    number: int
    fingerprint: str  # of the model
    width: int  # of its embeddings
    origin: Origin
    when: float = field(default_factory=time.time)
    indexed: int = 0  # sightings that the approximate index was built over; 0 = none was built
    descriptor: str = ""  # of its model; empty where 0.1 wrote it: then it is the manifest's
    n_features: int = 0  # likewise


@dataclass(frozen=True)
class Manifest:
    """The document that is replaced last in any change of model: the switch.

    `history` begins with the model the gallery was created with and ends with the one in use; one
    between them, if there is one, is the one before it, for an undo.
    """

    descriptor: str  # fingerprint of the descriptors of the model in use
    width: int  # and their length
    history: tuple[Generation, ...]
    retention_days: float | None = None
    created: float = field(default_factory=time.time)
    stored: Stored = "float32"  # descriptors; "none": computed from the images when needed
    log_days: float | None = None  # after which entries of the log are emptied
    asks_purpose: bool = False  # whether searches must state one
    second_person: bool = False  # whether a match needs the answers of two people
    prior: float = 0.5  # how probable it is before looking that a camera has seen the person
    false_accepts: float = 0.1  # how often the answer "found" may be wrong about people not there
    false_rejects: float = 0.1  # and "absent" about people who are there
    pending: Generation | None = None  # the model of a rebuild that has not finished

    @property
    def rates(self) -> Rates:
        """What the answers of a search promise."""
        return Rates(self.prior, self.false_accepts, self.false_rejects)

    @property
    def current(self) -> Generation:
        """The generation in use."""
        return self.history[-1]

    @property
    def numbers(self) -> set[int]:
        """The numbers of all generations that are kept."""
        return {generation.number for generation in self.history}

    def with_history(self, history: tuple[Generation, ...]) -> Manifest:
        """Return a copy with other models; the last of them decides on the descriptors."""
        last = history[-1]
        descriptor, width = last.descriptor or self.descriptor, last.n_features or self.width
        return replace(self, history=history, descriptor=descriptor, width=width)

    def _checked(self) -> Manifest:
        """Refuse parts of the wrong kind."""
        if not self.history or self.stored not in get_args(Stored):
            raise ValueError("no model, or an unknown way to store descriptors")
        check_name(self.descriptor, "descriptor")
        self.rates.check()
        for count in (self.width, *(n for g in self.history for n in (g.number, g.width))):
            check_count(count, "number or width")
        return self

    def store(self, engine: Engine) -> None:
        """Write it: one document, so readers see the old or the new one."""
        document = {"schema": SCHEMA, "resight": __version__, **asdict(self)}
        engine.put({NAME: json.dumps(document, indent=1, allow_nan=False).encode()})

    @staticmethod
    def read(engine: Engine | LanceSource) -> Manifest:
        """Read it, refusing what is no gallery, damaged or of another format."""
        content = engine.get(NAME) if engine.exists() else None
        if content is None:
            raise StoreError(
                f"no gallery at {engine.uri}, or its creation was interrupted: then run that "
                "command again. Create a new one with `resight gallery create`"
            )
        try:
            document = parse_json(content)
            schema = document.pop("schema")
            if schema in _READ:
                document.pop("resight")
                document["history"] = tuple(Generation(**g) for g in document["history"])
                if document.get("pending") is not None:
                    document["pending"] = Generation(**document["pending"])
                return Manifest(**document)._checked()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"gallery {engine.uri}: its manifest is damaged; restore it from a backup"
            ) from error
        raise StoreError(
            f"gallery {engine.uri} has format {schema!r}, resight {__version__} reads "
            f"{SCHEMA!r}; update resight or create the gallery again"
        )


def model_documents(prefix: str, model: Any) -> dict[str, bytes]:
    """Write a model's files as documents whose names begin with `prefix`."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        files = sorted((Path(folder) / "model").iterdir())
        return {f"{prefix}{file.name}": file.read_bytes() for file in files}


def read_model(engine: Engine, prefix: str) -> Any:
    """Load the model that `model_documents` wrote."""
    if not engine.names(prefix):
        raise StoreError(f"gallery {engine.uri}: the files of {prefix.rstrip('/')} are missing")
    where = f"{prefix.rstrip('/')} of gallery {engine.uri}"
    return open_model(lambda name: engine.large(f"{prefix}{name}"), where)


def store_model(engine: Engine, generation: int, model: Any, examples: Sequence[str] = ()) -> None:
    """Write a model's files, and which sightings taught it, as documents of a generation."""
    documents = model_documents(f"model/{generation}/", model)
    engine.put({**documents, f"trained/{generation}": json.dumps(list(examples)).encode()})


def load_model(engine: Engine, generation: int) -> Any:
    """Load the model of a generation from its documents."""
    return read_model(engine, f"model/{generation}/")


def drop_model(engine: Engine, generation: int) -> None:
    """Remove a generation: its embeddings and its model's files."""
    with engine.transaction():
        engine.drop_generation(generation)
        engine.drop([*engine.names(f"model/{generation}/"), f"trained/{generation}"])


def trained_on(engine: Engine, generation: int) -> list[str]:
    """List the sightings of this gallery that a model was fitted on."""
    content = engine.get(f"trained/{generation}")
    return [] if content is None else [str(sighting) for sighting in parse_json(content)]


def drop_candidate(engine: Engine) -> None:
    """Forget the refitted model that nobody uses."""
    engine.drop([CANDIDATE, *engine.names(f"{CANDIDATE}/")], searched=False)


def note(engine: Engine, model: str, **facts: Any) -> None:
    """Add facts to what is known about the model of that fingerprint."""
    entry = {"model": model, "when": time.time(), **facts}
    engine.append(MODELS, secrets.token_hex(8), json.dumps(entry, allow_nan=False))


def models(engine: Engine, manifest: Manifest) -> list[dict[str, Any]]:
    """List all models of a gallery, oldest first.

    Each has its fingerprint ("model"), "when", "origin" and "state" ("in use", "used before", "not
    used"), and the figures of `resight.gallery.teaching.Candidate` where it was measured.
    """
    known: dict[str, dict[str, Any]] = {}
    kept = [{"model": g.fingerprint, "when": g.when, "origin": g.origin} for g in manifest.history]
    for entry in [*kept, *(json.loads(text) for _, text in engine.read(MODELS))]:
        known[entry["model"]] = {**entry, **known.get(entry["model"], {})}
    used = {one["model"] for one in kept} | {m for m, one in known.items() if "used" in one}
    for model, one in known.items():
        one.pop("used", None)
        one["state"] = "used before" if model in used else "not used"
    known[manifest.current.fingerprint]["state"] = "in use"
    return sorted(known.values(), key=lambda one: float(one["when"]))


def check_days(days: float | None) -> None:
    """Refuse a retention that keeps nothing, or longer than anybody can promise."""
    if days is not None and check_number(days, "retention", 0, MAX_DAYS) == 0:
        raise InputError("retention of 0 days: give a number above 0, or none to keep all")
