"""Learning from what was taught: fit again on the labelled sightings, and say what it brings.

The gain is measured by cross-validation over people who were taught on the page: in each fold the
new model never sees the people it is asked about. The model in use has not seen them either, or,
where it has (it came from an earlier refit), it is fitted again without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import seen_by_two
from resight.errors import InputError
from resight.gallery.engines.base import Floats32
from resight.gallery.gallery import Gallery
from resight.gallery.labels import Labels
from resight.gallery.view import View, read_journal

Texts = NDArray[np.str_]
Progress = Callable[[str, float], None]

MIN_PEOPLE = 2
_FOLDS = 5


@dataclass(frozen=True)
class Examples:
    """Labelled sightings: what a model is fitted on.

    Notes
    -----
    A sighting that was only rejected is no example. Taken as somebody seen once, it would make a
    false dissimilar pair with every other sighting of that person that was rejected too; on
    synthetic cameras this cost 4 points of rank 1. Rejections keep people apart.
    """

    ids: list[str]
    features: Floats32
    persons: Texts
    cameras: Texts

    def without(self, people: set[str]) -> Examples:
        """Leave some people out."""
        keep = np.array([person not in people for person in self.persons.tolist()])
        ids = [sighting for sighting, kept in zip(self.ids, keep, strict=True) if kept]
        return Examples(ids, self.features[keep], self.persons[keep], self.cameras[keep])


@dataclass(frozen=True)
class Candidate:
    """A refitted model that nobody uses yet, with its gain.

    Attributes
    ----------
    before, after : float
        Rank 1 across cameras on people held out, in percent.
    queries, people : int
        How many sightings of how many people were asked for.
    uncalibrated : str or None
        Why the model states no probabilities, if it does not.
    """

    model: Any
    trained_on: list[str]
    before: float
    after: float
    queries: int
    people: int
    uncalibrated: str | None = None

    @property
    def better(self) -> bool:
        """Whether it finds at least as many as the model in use."""
        return self.after >= self.before


def why_not(view: View) -> str | None:
    """Say what is missing for a refit; None if nothing is."""
    taught = view.labels.taught() & set(seen_by_two(view.persons, view.table.cameras).tolist())
    if len(taught) < MIN_PEOPLE:
        return (
            f"Confirm matches of at least {MIN_PEOPLE} people across two cameras "
            f"first; so far there {'is' if len(taught) == 1 else 'are'} {len(taught)}."
        )
    return None


def refit(gallery: Gallery, on_step: Progress | None = None) -> Candidate:
    """Fit a model on everything that is labelled and measure its gain; nothing is changed yet.

    Parameters
    ----------
    on_step : callable, optional
        Called with words and the share that is done.
    """
    from resight.models.calibrating import add_calibration

    say = on_step or (lambda words, share: None)
    view = gallery.view
    reason = why_not(view)
    if reason is not None:
        raise InputError(reason)
    say("reading descriptors", 0.0)
    examples = labelled(gallery)
    taught = view.labels.taught() & set(seen_by_two(examples.persons, examples.cameras).tolist())
    earlier = _examples_of_current(gallery, view)
    folds = [sorted(taught)[i::_FOLDS] for i in range(min(_FOLDS, len(taught)))]
    before: list[bool] = []
    after: list[bool] = []
    for number, held_out in enumerate(folds):
        say(f"cross-validation, fold {number + 1} of {len(folds)}", 0.1 + 0.7 * number / len(folds))
        people = set(held_out)
        old = view.model if earlier is None else fit_like(view.model, earlier.without(people))
        before += rank1_hits(old, examples, people)
        after += rank1_hits(fit_like(view.model, examples.without(people)), examples, people)
    say("training on everything", 0.8)
    model = fit_like(view.model, examples)
    say("calibrating", 0.9)
    uncalibrated = add_calibration(model, examples.features, examples.persons, examples.cameras)
    say("done", 1.0)
    return Candidate(
        model,
        examples.ids,
        _percent(before),
        _percent(after),
        len(before),
        len(taught),
        uncalibrated,
    )


def adopt(gallery: Gallery, candidate: Candidate, on_step: Progress | None = None) -> None:
    """Use the refitted model from now on; `Gallery.undo_rebuild` goes back."""
    say = on_step or (lambda words, share: None)
    gallery.rebuild(
        candidate.model,
        origin="refit",
        trained_on=candidate.trained_on,
        on_step=lambda share: say("computing embeddings", share),
    )


def rank1_hits(model: Any, examples: Examples, people: set[str]) -> list[bool]:
    """Whether each sighting of `people` finds its person first among the other cameras' sightings.

    A tie counts as a miss. Sightings whose person no other camera has seen are not asked for.
    """
    D = np.asarray(model.distances(examples.features, examples.features), float)  # (n, n)
    hits = []
    for row, (person, camera) in enumerate(zip(examples.persons, examples.cameras, strict=True)):
        other = examples.cameras != camera
        same = other & (examples.persons == person)
        if person in people and same.any():
            wrong = D[row, other & (examples.persons != person)]
            hits.append(bool(D[row, same].min() < wrong.min(initial=np.inf)))
    return hits


def labelled(gallery: Gallery) -> Examples:
    """Return everything that is labelled now."""
    view = gallery.view
    return _examples(gallery, view, view.labels)


def _examples(gallery: Gallery, view: View, labels: Labels) -> Examples:
    persons = labels.persons(view.table.ids.tolist())
    rows = np.flatnonzero(persons != "")
    ids = view.table.ids[rows].tolist()
    features = gallery.features(ids).features
    return Examples(ids, features, persons[rows], view.table.cameras[rows])


def _examples_of_current(gallery: Gallery, view: View) -> Examples | None:
    """Return what the model in use was refitted on; None if it came from elsewhere."""
    generation = view.manifest.current
    if generation.origin != "refit":
        return None
    journal = [entry for entry in read_journal(gallery.engine) if entry.when <= generation.when]
    return _examples(gallery, view, Labels(view.table.ids, view.table.persons, journal))


def fit_like(like: Any, examples: Examples) -> Any:
    """Fit k-XQDA on the descriptors of another model, with its settings if it is k-XQDA too.

    A setting that was chosen is not chosen again. Landmarks are for more sightings than a gallery
    usually has labels for, so k-XQDA is exact up to the size up to which `fit` is by default.
    """
    from resight.learners._landmarks import EXACT_LIMIT
    from resight.learners.kxqda import KXQDA
    from resight.models.held_out_distances import unfitted
    from resight.models.model import Model
    from resight.tuning.auto import AutoKXQDA

    kept = isinstance(like.learner, KXQDA | AutoKXQDA)
    learner = unfitted(like.learner) if kept else KXQDA()
    if isinstance(learner, KXQDA) and len(examples.ids) <= EXACT_LIMIT:
        learner.set_params(landmarks=None)
    # Another learner may have had raw descriptors; k-XQDA is to have them normalised.
    normalize = like.normalizer is not None if kept else True
    model = Model(like.descriptors, learner, mirror=like.mirror, normalize=normalize)
    return model.fit(examples.features, examples.persons, examples.cameras)


def _percent(hits: list[bool]) -> float:
    return 100.0 * sum(hits) / len(hits)
