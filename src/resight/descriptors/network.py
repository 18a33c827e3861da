"""A user's network as a descriptor: an ONNX file that turns a crop into a vector."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight._files import digest_of
from resight._progress import log
from resight.descriptors._base import Descriptor, FeatureParts
from resight.errors import InputError, unknown_name
from resight.images.colour import Floats, Image
from resight.networks.files import digest_of_network, find_network, network_files, receive
from resight.networks.preprocessing import Preprocessing
from resight.networks.session import Session
from resight.saving import SavableMixin

SUFFIX = ".onnx"
BATCH = 8  # images at once: more only leave the processor's cache
_SIZE = (256, 128)  # height and width where the graph leaves them open
_METADATA = "resight"  # key of the file's own metadata that may hold the JSON
_SAME = 1e-2  # relative: rounding differs between batches, images that mix do not round alike

_open_here: dict[str, Session] = {}
_lock = threading.Lock()


class Network(SavableMixin, Descriptor):
    """A network of the user's own: any ONNX file that takes a batch of images.

    How images are prepared is read from the JSON of the same name beside the file, else from the
    entry ``resight`` of the file's metadata; what they leave out is as usual in re-identification:
    the size of the graph, RGB between 0 and 1, ImageNet's mean and deviation.

    Parameters
    ----------
    file : path
    mirror : bool
        Average over each image and its mirror image.
    embed : bool
        Whether a model that is saved carries the file itself, rather than its name and digest.

    Notes
    -----
    onnxruntime runs it on one thread; threads and processes share the images among them. A session
    is opened on first use, once in each process, and is never pickled.

    Examples
    --------
    >>> from resight.descriptors import Network
    >>> Network("osnet.onnx").transform(["a.jpg", "b.jpg"]).shape  # doctest: +SKIP
    (2, 512)
    """

    allowed: ClassVar = {"embed": (False, True)}
    state_version = 1
    learned = "digest_ preprocessing_ n_features_ contents_"
    version = 1

    def __init__(
        self, file: str | os.PathLike[str], *, mirror: bool = False, embed: bool = False
    ) -> None:
        # Absolute, so that workers and models that are used elsewhere find it.
        self.file = os.fspath(file) if os.path.isabs(file) else os.path.abspath(file)
        self.mirror, self.embed = mirror, embed
        self.name = Path(self.file).stem

    @property
    def blocks(self) -> tuple[int, ...]:  # type: ignore[override]
        """All features are one block."""
        return (self.n_features_,)

    @property
    def fingerprint(self) -> str:
        """Digest of the file's contents and the preprocessing, whatever the file is called."""
        way, versions = self.preprocessing.numbers(), f"{self.version}.{images.VERSION}"
        return digest_of("resight.network", self.digest_, way, versions, str(self.mirror))

    @cached_property
    def digest_(self) -> str:
        """Digest of the file and of its weights, if it keeps them outside."""
        return digest_of_network(Path(self.file))

    @property
    def path(self) -> Path:
        """Where the file is; one with other contents is refused."""
        return find_network(Path(self.file), self.digest_)

    @cached_property
    def preprocessing_(self) -> dict[str, Any]:
        """What is done to an image, and which output is taken, as in the JSON."""
        way = _preprocessing(Path(self.file), self.session)
        return {"size": list(way.size), **way.model_dump(exclude={"size"})}

    @cached_property
    def preprocessing(self) -> Preprocessing:
        """The same, ready for use."""
        return Preprocessing(**self.preprocessing_)

    @cached_property
    def n_features_(self) -> int:
        """Length of the vectors, found by describing an image of nothing."""
        return self._run(self.preprocessing.batch([np.zeros((64, 32, 3), np.uint8)])).shape[1]

    @property
    def contents_(self) -> NDArray[np.uint8] | None:
        """The file itself, for models that carry it."""
        if not self.embed:
            return None
        self.check_embedding()
        return np.fromfile(self.path, np.uint8)

    def check_embedding(self) -> None:
        """Refuse to let a model carry a network of unknown licence, or one of several files."""
        if not self.preprocessing.licence:
            raise InputError(
                f"a model may carry {self.name}{SUFFIX} only if it says under which licence: run "
                f"`resight network describe {self.file} --licence NAME`, or let the model name the "
                "file instead"
            )
        if len(network_files(self.path)) > 1:
            raise InputError(
                f"{self.path} keeps its weights in other files, so a model cannot carry it; export "
                "it into one file"
            )

    @property
    def networks(self) -> tuple[Network, ...]:
        """Itself: what other machines need besides the code."""
        return (self,)

    @property
    def session(self) -> Session:
        """The network in this process: opened once, whoever uses it."""
        with _lock:
            if self.digest_ not in _open_here:
                _open_here[self.digest_] = session = Session(self.path)
                known = self.__dict__.get("preprocessing_")
                way = Preprocessing(**known) if known else _preprocessing(Path(self.file), session)
                log.info("network %s: %s, output %r", self.name, way, way.output)
            return _open_here[self.digest_]

    @cached_property
    def batch(self) -> int:  # type: ignore[override]  # a number for others, found out here
        """How many images are described at once: as many as the graph takes."""
        fixed = self.session.input.shape[0]
        if fixed is not None:
            return fixed
        rng = np.random.default_rng(0)
        pair = self.preprocessing.batch(list(rng.integers(0, 256, (2, 64, 32, 3), np.uint8)))
        try:
            together = self._run(pair)
        except InputError:  # a graph that says any number, and was exported with one
            return 1
        alone = self._run(pair[:1])
        # Exported while training, it normalises over the batch: then each image goes alone.
        same = np.allclose(together[:1], alone, rtol=_SAME, atol=_SAME, equal_nan=True)
        return BATCH if same else 1

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (n_features,)."""
        return self.describe_batch([image])[0]

    def describe_batch(self, batch: Sequence[Image]) -> Floats:
        """Describe images as they are, (n, n_features)."""
        found = self._run(self.preprocessing.batch(batch))
        if found.shape[1] != self.n_features_:
            raise InputError(
                f"{self.name} gave {found.shape[1]} features, and {self.n_features_} before; a "
                "descriptor gives every image a vector of the same length"
            )
        return found

    def feature_names(self) -> list[str]:
        """Give the features numbers: nobody knows what they measure."""
        return [f"{self.name} {number}" for number in range(self.n_features_)]

    def feature_parts(self) -> FeatureParts:
        """Every feature looks at the whole image."""
        height, every = self.preprocessing.size[0], np.zeros(self.n_features_, int)
        return FeatureParts(height, ("network",), every, every + height, every)

    def with_mirror(self, mirror: bool) -> Network:
        """Return the same network, its identity included, with or without mirror images."""
        other = copy(self)
        other.mirror = mirror
        return other

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Network:
        """Make a network of what a model file says; one that it carries goes to a temporary file.

        Where the model only names it, the file is looked for when an image is described.
        """
        contents = state.pop("contents_", None)
        made = super().from_state(state)
        if contents is not None:
            made.file = str(receive(made.digest_, {f"{made.name}{SUFFIX}": contents.tobytes()}))
        return made

    def __getstate__(self) -> dict[str, Any]:
        # Found out here once, rather than by every worker.
        _ = self.digest_, self.preprocessing_, self.n_features_, self.batch
        return dict(vars(self))

    def _run(self, batch: NDArray[np.float32]) -> Floats:
        """Run prepared images through the graph, in batches that it takes; (n, n_features)."""
        way, fixed = self.preprocessing, self.session.input.shape[0]
        if fixed is None or len(batch) == fixed:
            [output] = self.session.run(batch, [str(way.output)])
            return self._vectors(output, len(batch))
        parts = []
        for start in range(0, len(batch), fixed):
            part = batch[start : start + fixed]
            filler = np.zeros((fixed - len(part), *part.shape[1:]), np.float32)
            parts.append(self._run(np.concatenate([part, filler]))[: len(part)])
        return np.concatenate(parts)

    def _vectors(self, output: NDArray[Any], n_images: int) -> Floats:
        if output.ndim < 2 or len(output) != n_images:
            raise InputError(
                f"{self.name} gave shape {output.shape} for {n_images} images; its output "
                f"{self.preprocessing.output!r} needs a batch axis: export the network with one, "
                "or name another output in the JSON beside it"
            )
        values = np.asarray(output, np.float64)
        if values.ndim > 2 and self.preprocessing.pool == "mean":
            # Tokens come before features (n, tokens, d), places after them (n, d, h, w).
            values = values.mean(axis=1 if values.ndim == 3 else tuple(range(2, values.ndim)))
        return values.reshape(n_images, -1)


def _preprocessing(file: Path, session: Session) -> Preprocessing:
    """Put together what the JSON, the metadata and the graph say; refuse contradictions."""
    _, _, *fixed = session.input.shape
    size = [n or usual for n, usual in zip(fixed, _SIZE, strict=True)]
    vectors = [output.name for output in session.outputs if len(output.shape) == 2]
    output = (vectors or [one.name for one in session.outputs])[0]
    defaults = {"size": size, "output": output, "interpolation": "antialiased"}
    way = Preprocessing.beside(file, **{**defaults, **_metadata(file, session)})
    way = way.model_copy(update={"output": way.output or output})
    if any(n not in (None, given) for n, given in zip(fixed, way.size, strict=True)):
        raise InputError(
            f"{file.with_suffix('.json').name} says size {list(way.size)}, but {file.name} takes "
            f"{fixed[0] or 'any'} x {fixed[1] or 'any'} (height x width); correct the JSON"
        )
    names = [one.name for one in session.outputs]
    if way.output not in names:
        raise unknown_name(f"output of {file.name}", str(way.output), names)
    return way


def _metadata(file: Path, session: Session) -> dict[str, Any]:
    try:
        return dict(json.loads(session.metadata.get(_METADATA, "{}")))
    except (ValueError, TypeError):
        raise InputError(
            f"the metadata entry {_METADATA!r} of {file} is not a JSON object; correct it, or put "
            f"the preprocessing into {file.with_suffix('.json').name}"
        ) from None
