"""A model that answers: descriptors, normalisation and learner, fitted and saved as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight._files import atomic_write, digest_of
from resight.descriptors import descriptor
from resight.descriptors._base import Descriptor, Joined
from resight.descriptors.describing import extract
from resight.errors import InputError
from resight.saving import SavableMixin

if TYPE_CHECKING:  # a search needs no learner, and importing scikit-learn takes longer than it
    from resight.descriptors.network import Network
    from resight.evaluation.calibration import Calibration
    from resight.learners._base import Floats, GrowingLearner, MetricLearner
    from resight.learners.normalizer import BlockNormalizer

CARD = "card.md"


class Describing:
    """What a model does before and after its learner: it describes images, it knows odds."""

    descriptors: tuple[Any, ...]  # names and networks
    mirror: bool
    calibration: Calibration | None
    own_width: int  # length of a user's own vectors, where there are no descriptors

    def describe(self, images: Sequence[Path | str | NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Compute the descriptors of images or image files, shape (n, n_features)."""
        if not self.descriptors:
            raise InputError(
                "this model was fitted on your own vectors, so it cannot describe images; "
                "give it vectors of the same kind (--features)"
            )
        return extract(self.descriptor, images).features

    def probability(self, distances: ArrayLike) -> Floats | None:
        """Return the probability that two sightings show one person; None if not calibrated."""
        return None if self.calibration is None else self.calibration.probability(distances)

    @property
    def descriptor(self) -> Joined:
        """Its descriptors as one: what a worker needs, without a learner of many megabytes."""
        return Joined(tuple(descriptor(name, mirror=self.mirror) for name in self.descriptors))

    @property
    def networks(self) -> tuple[Any, ...]:
        """Those of its descriptors that are networks."""
        return tuple(one for one in self.descriptors if not isinstance(one, str))

    @property
    def descriptor_fingerprint(self) -> str:
        """Tells apart features that must not be mixed; of own vectors only the length is known."""
        if not self.descriptors:
            return digest_of("resight.vectors", str(self.n_features))
        return self.descriptor.fingerprint

    @property
    def n_features(self) -> int:
        """Length of the vectors that it takes."""
        return self.descriptor.n_features if self.descriptors else self.own_width


class Model(SavableMixin, Describing):
    """Everything between an image and a distance.

    Parameters
    ----------
    descriptors : sequence of str or Descriptor
        Names whose vectors are put side by side, such as ``("gog", "lomo-dagger")``, and networks
        (`resight.descriptors.Network`). Empty for a model of a user's own vectors.
    learner : MetricLearner
        Fitted by `fit`.
    mirror : bool
        Average each descriptor over the image and its mirror image.
    normalize : bool or BlockNormalizer
        Centre and L2-normalise each block of the descriptors before learning; or how to.
    calibration : optional
        Turns distances into probabilities; see `resight.evaluation.calibration`.

    Attributes
    ----------
    card : str
        What it was learned from and its limits, in Markdown; `fit` writes it, `save` puts it beside
        the model as ``card.md``.
    """

    state_version = 1
    learned = "card"
    card = ""

    def __init__(
        self,
        descriptors: Sequence[str | Descriptor],
        learner: MetricLearner,
        *,
        mirror: bool = False,
        normalize: bool | BlockNormalizer = True,
        calibration: Calibration | None = None,
    ) -> None:
        from resight.descriptors.network import Network
        from resight.learners.normalizer import BlockNormalizer

        self.descriptors: tuple[str | Network, ...] = tuple(
            one if isinstance(one, (str, Network)) else one.name for one in descriptors
        )
        self.learner = learner
        self.mirror = mirror
        if normalize is True:
            widths = [width for one in self.descriptors for width in descriptor(one).blocks]
            normalize = BlockNormalizer(tuple(widths) or None)  # one block of own vectors
        self.normalizer = normalize or None
        self.calibration = calibration

    @property
    def normalize(self) -> bool | BlockNormalizer:
        """What the constructor makes `normalizer` of."""
        return self.normalizer or False

    @classmethod
    def migrate(cls, state: dict[str, Any], version: int) -> dict[str, Any]:
        """Resight 0.1 wrote the normaliser under the attribute's name."""
        return {**state, "normalize": state["normalizer"] or False} if version == 0 else state

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Load a model that `save` or `resight fit` wrote."""
        from resight.models.files import load

        loaded = load(path)
        if not isinstance(loaded, cls):
            raise InputError(
                f"{path} holds a {type(loaded).__name__}, not a model; open it with resight.load"
            )
        return loaded

    def save(self, path: str | Path) -> Model:
        """Write the model folder, and the card in it for whoever looks there."""
        super().save(path)
        if self.card:
            with atomic_write(Path(path) / CARD, "w") as stream:
                stream.write(self.card)
        else:  # that of the model which was here before
            (Path(path) / CARD).unlink(missing_ok=True)
        return self

    def fit(self, features: ArrayLike, persons: ArrayLike, cameras: ArrayLike | None) -> Model:
        """Fit normalisation and learner on labelled training features."""
        rows = np.asarray(features)
        if self.normalizer is not None:
            rows = self.normalizer.fit_transform(rows)
        self.learner.fit(rows, persons, cameras)
        return self

    def add_people(
        self, features: ArrayLike, persons: ArrayLike, cameras: ArrayLike | None
    ) -> Model:
        """Add people to those that the model was learned from, without fitting again.

        It must be a model of landmarks or of `IRS`. Normalisation, landmarks and kernel stay those
        of `fit`. The calibration is dropped: it tells what distances of the old metric mean.

        Parameters
        ----------
        features, persons, cameras : as in `fit`
            All sightings of each new person; see `KXQDA.add_people`, `IRS.add_people`.
        """
        self.extensible()._grow(self.normalized(features), persons, cameras)
        self.calibration = None
        if self.card:
            added = f"{len(np.asarray(persons)):,} sightings were added after the fit"
            self.card += f"\n{added}; figures and calibration above are of before.\n"
        return self

    def embed(self, features: ArrayLike) -> Floats:
        """Embed features, shape (n, n_components): distances are squared Euclidean there."""
        return self.learner.transform(self.normalized(features))

    def distances(self, queries: ArrayLike, gallery: ArrayLike) -> Floats:
        """Return the learned distances between features, (n_queries, n_gallery)."""
        return self.learner.distances(self.normalized(queries), self.normalized(gallery))

    @property
    def own_width(self) -> int:  # type: ignore[override]
        """Length of the vectors that it was fitted on; 0 before."""
        return int(getattr(self.learner, "n_features_in_", 0))

    @property
    def fingerprint(self) -> str:
        """Tells apart embeddings that must not be mixed."""
        parameters = repr(sorted(self.learner.get_params().items(), key=lambda item: item[0]))
        return digest_of(
            self.descriptor_fingerprint,
            str(self.normalizer is not None),
            type(self.learner).__name__,
            parameters,
            self.learner.training_fingerprint_,
        )

    def extensible(self) -> GrowingLearner:
        """Return the learner if people can be added to it; refuse otherwise."""
        learner = self.learner
        if not (hasattr(learner, "add_people") and hasattr(learner, "persons_")):
            raise InputError(
                "people can be added to a fitted kxqda with landmarks, which keeps sums, and to "
                f"irs; this model has {learner!r}. Fit again on all people, with one of these if "
                "more are to be added later"
            )
        return cast("GrowingLearner", learner)

    def normalized(self, features: ArrayLike) -> NDArray[Any]:
        """Return features as the learner sees them."""
        rows = np.asarray(features)
        return rows if self.normalizer is None else self.normalizer.transform(rows)
