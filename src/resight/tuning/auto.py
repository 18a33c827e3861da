"""AutoKXQDA: k-XQDA that chooses its own setting from the training people it is given."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.learners._base import Codes, Floats, MetricLearner
from resight.learners._blocks import block_slices
from resight.learners._parameters import Count, Folds, NotNegative, Seed
from resight.learners.normalizer import BlockNormalizer
from resight.tuning.candidates import AUTO_ROWS
from resight.tuning.cross_validation import some_people
from resight.tuning.fold_metrics import Fold
from resight.tuning.gram import GramSpace
from resight.tuning.mixture import descriptor_blocks, embed
from resight.tuning.search import Search
from resight.tuning.settings import PLAIN, Setting
from resight.tuning.sketch import shares


class AutoKXQDA(MetricLearner):
    """k-XQDA that chooses kernels, regularisers, descriptors and how much to learn at all.

    It uses `cameras`. A weighted sum of distances is chosen by cross-validation over the people it
    is given: Euclidean and cosine, which learn nothing, XQDA, KNFST and k-XQDA, on each descriptor
    and on all together. With fewer than 16 people seen by two cameras nothing is chosen: vectors
    are compared as they are, and a warning says so. See docs/auto.md for what is tried.

    Parameters
    ----------
    blocks : sequence of sequences of int, optional
        For each descriptor the widths of its blocks, as ``descriptor(name).blocks`` tells; by
        default all features are one descriptor of one block. Blocks are centred and
        L2-normalised inside, so give raw descriptors.
    n_folds, n_repeats : int, optional
        Person-disjoint folds, and how often they are drawn anew; by default from 5 folds three
        times for few people to 3 folds once for many.
    budget : float, optional
        Seconds for the choice. When they are over, the best mixture of what was tried is taken.
    seed : int
        Draws the folds.
    setting : dict, optional
        The ``setting_`` of an earlier choice: nothing is chosen, it is fitted as it is.

    Attributes
    ----------
    setting_ : dict
        What was chosen.
    why_ : str
        The same in a sentence.
    candidates_ : list of dict
        Everything that was tried, with mean score (mean average precision on held-out people),
        its standard error, the number of folds and its share in the mixture; empty with `setting`.
    X_fit_ : array (n_train, n_features)
        Normalised training rows.
    n_components_ : int

    References
    ----------
    That of `KXQDA`.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import AutoKXQDA
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(30), 2)
    >>> X = rng.normal(size=(30, 50))[persons] + 0.5 * rng.normal(size=(60, 50))
    >>> learner = AutoKXQDA(n_repeats=1).fit(X, persons, np.repeat(["A", "B"], 30))
    >>> len(learner.candidates_)
    8
    """

    state_version = 2
    learned = "normalizer_ ends_ setting_ why_ candidates_ X_fit_ kernels_ coefs_ offsets_"

    blocks: Sequence[Sequence[int]] | None = None
    n_folds: Folds | None = None
    n_repeats: Count | None = None
    budget: NotNegative | None = None
    seed: Seed = 0
    setting: dict[str, Any] | None = None

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        if len(X) > AUTO_ROWS:
            rows = some_people(persons, AUTO_ROWS)
            some, everybody = len(np.unique(persons[rows])), len(np.unique(persons))
            warnings.warn(
                f"{some} of {everybody} people ({len(rows):,} of {len(X):,} sightings) are learned "
                "from; KXQDA with landmarks learns from all",
                UserWarning,
                stacklevel=3,
            )
            X, persons = X[rows], persons[rows]
            cameras = None if cameras is None else cameras[rows]
        descriptors = descriptor_blocks(self.blocks, X.shape[1])
        flat = tuple(width for widths in descriptors for width in widths)
        self.normalizer_ = BlockNormalizer(flat).fit(X)
        self.ends_ = np.cumsum([0, *(sum(widths) for widths in descriptors)]).tolist()
        space = GramSpace([X[:, a:b] for a, b in pairwise(self.ends_)], descriptors, "float64")
        self.candidates_: list[dict[str, Any]] = []
        if self.setting is None:
            setting = self.choose(space, persons, cameras)
        else:
            setting = _checked(self.setting, len(descriptors))
        self.setting_, self.why_ = setting.as_dict(), setting.sentence()
        # Rounding errors of unit vectors average out over features: kernels keep nine digits.
        self.X_fit_ = self.normalizer_.transform(X).astype(np.float32)
        whole = Fold(space.descriptors(), np.arange(len(X)), np.arange(0), persons, cameras)
        self._keep_parts(setting, whole)

    def choose(
        self,
        space: GramSpace,
        persons: NDArray[Any],
        cameras: NDArray[Any] | None,
        mirrored: bool = False,
    ) -> Setting:
        """Choose from inner products; parameters as in `resight.tuning.search.Search`."""
        options = {k: v for k, v in self.get_params().items() if k not in ("blocks", "setting")}
        rows = np.arange(len(space))
        search = Search(space, rows, persons, cameras, mirrored=mirrored, **options)
        setting = search.run()
        if search.stopped is not None:
            warnings.warn(search.stopped, UserWarning, stacklevel=4)
        self.candidates_ = [one.as_dict() for one in search.tried]
        return setting

    def _keep_parts(self, setting: Setting, whole: Fold) -> None:
        """Fit every part on all rows, scaled so that its distances have its weight."""
        kept: list[tuple[dict[str, Any], Floats, Floats]] = []  # kernel, coefficients and offset
        ends = np.cumsum([0, *(self.normalizer_.blocks or ())]).tolist()  # of the weights of blocks
        for weight, part in setting.parts:
            if part.learner in PLAIN:
                scale = np.sqrt(weight / whole.plain_unit(part, not setting.learns))
                own: dict[str, Any] = {"weights": list(part.weights), "plain": part.learner}
                own["whole"] = not setting.learns
                kept.append((own, np.array(scale), np.zeros(0)))
                continue
            pieces = whole.pieces(part)
            for fold, piece in pieces:
                fitted = fold.fit(piece)
                scale = np.sqrt(weight / len(pieces) / fitted.unit)
                own = dict(vars(fitted.kernel))
                own |= {"ends": ends} if part.blocks else {}
                kept.append((own, scale * fitted.coef, scale * fitted.offset))
        self.kernels_, self.coefs_, self.offsets_ = map(list, zip(*kept, strict=True))
        self.n_components_ = self._embed(self.normalizer_.mean_[None]).shape[1]

    def _embed(self, X: Floats) -> Floats:
        return embed(self, X)

    def plain_shares(self, D: Floats, part: int) -> Floats:
        """Return what each feature adds to the distance of a part that learns nothing.

        D (n, n_features) are differences of normalised rows; `part` is its place in `kernels_`.
        """
        added, kernel = np.zeros_like(D), self.kernels_[part]
        for i, weight in enumerate(kernel["weights"]):
            widths = descriptor_blocks(self.blocks, D.shape[1])[i]
            for block in block_slices(widths, sum(widths)) if weight else []:
                own = slice(self.ends_[i] + block.start, self.ends_[i] + block.stop)
                d = D[:, own]
                added[:, own] = weight * (d**2 if kernel.get("whole") else shares(d, len(widths)))
        return self.coefs_[part] ** 2 * added


def _checked(given: dict[str, Any], n_descriptors: int) -> Setting:
    """Read a setting and check it against the descriptors."""
    try:
        setting = Setting.from_dict(given)
    except (KeyError, TypeError) as error:
        raise InputError(
            f"setting is not one that was chosen before ({error}); give the setting_ of a fitted "
            "AutoKXQDA, or None to choose"
        ) from None
    if (n_chosen := len(setting.parts[0][1].weights)) != n_descriptors:
        raise InputError(
            f"setting has {n_chosen} descriptors; here are {n_descriptors}. Give the "
            "setting of a choice among the same descriptors"
        )
    return setting
