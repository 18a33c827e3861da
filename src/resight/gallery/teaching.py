"""Learning from what was taught: fit again on the labelled sightings, and say what it brings.

The new model is made by the recipe of `evaluate` and `fit`, on the descriptors of the gallery. The
gain is measured by cross-validation over people who were taught on the page: in each fold the
new model never sees the people it is asked about. The model in use has not seen them either, or,
where it has (it came from an earlier refit), it is fitted again without them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from resight._files import digest_of
from resight.datasets.sightings import Sightings, seen_by_two
from resight.errors import InputError
from resight.evaluation.statistics import sign_test
from resight.features.rows import Features
from resight.gallery.engines.base import Engine, Floats32
from resight.gallery.filters import Texts
from resight.gallery.gallery import Gallery
from resight.gallery.index import Floats
from resight.gallery.labels import Labels
from resight.gallery.manifest import CANDIDATE, drop_candidate, model_documents, note, read_model
from resight.gallery.view import View
from resight.plans import LEARNER, budget_for, learner_for, plan_of
from resight.validation import parse_json

Progress = Callable[[str, float], None]

MIN_PEOPLE = 2
SURE = 0.05  # p below which a gain is called more than chance
_FIGURES = ("before", "after", "gain", "queries", "people", "p_value", "why")
_FOLDS = 5
_RESAMPLED = 2000


class Examples(NamedTuple):
    """Labelled sightings: what a model is fitted on.

    A sighting that was only rejected is no example. Taken as somebody seen once, it would make a
    false dissimilar pair with every other sighting of that person that was rejected too; on
    synthetic cameras this cost 4 points of rank 1. Rejections keep people apart.
    """

    ids: Texts
    features: Floats32
    persons: Texts
    cameras: Texts

    def without(self, people: set[str]) -> Examples:
        """Leave some people out."""
        keep = ~np.isin(self.persons, list(people))
        return Examples(self.ids[keep], self.features[keep], self.persons[keep], self.cameras[keep])


@dataclass(frozen=True)
class Candidate:
    """A refitted model that nobody uses yet, with its gain on people held out."""

    model: Any
    trained_on: list[str]
    before: float  # rank 1 across cameras in percent, of the model in use
    after: float  # and of this one
    gain: tuple[float, float]  # 95% interval of the difference, by resampling these people
    queries: int  # sightings that were asked for
    people: int  # and how many people they show
    p_value: float  # of the sign test: how easily chance makes such a difference
    why: str | None = None  # what was chosen, and why
    uncalibrated: str | None = None  # why the model states no probabilities, if it does not

    @property
    def figures(self) -> dict[str, Any]:
        """What the history of models notes of it."""
        return {name: getattr(self, name) for name in _FIGURES}

    @property
    def better(self) -> bool:
        """Whether it finds more than the model in use."""
        return self.after > self.before

    @property
    def words(self) -> str:
        """Say what is gained, if anything is."""
        told = (
            f"{self.after:.0f}% of {self.queries} test searches, the current one {self.before:.0f}%"
        )
        if not self.better:
            return f"nothing to gain yet: the new model finds {told}"
        chance = "" if self.p_value < SURE else f"; with {self.people} people that may be chance"
        return f"the new model finds {told}{chance}"


def _taught(view: View) -> set[str]:
    """Return people known from teaching alone whom two cameras have seen."""
    return view.labels.taught() & {*seen_by_two(view.persons, view.table.cameras).tolist()}


def why_not(view: View) -> str | None:
    """Say what is missing for a refit; None if nothing is."""
    n = len(_taught(view))
    if n >= MIN_PEOPLE:
        return None
    so_far = f"so far there {'is' if n == 1 else 'are'} {n}"
    return f"Confirm matches of at least {MIN_PEOPLE} people across two cameras first; {so_far}."


def refit(gallery: Gallery, say: Progress = lambda words, share: None) -> Candidate:
    """Fit a model on everything that is labelled and measure its gain; nothing is changed yet.

    What was measured is noted in the gallery's history of models. `say` is called with words and
    the share that is done.
    """
    from resight.models.calibrating import add_calibration

    view = gallery.view
    reason = why_not(view)
    if reason is not None:
        raise InputError(reason)
    say("reading descriptors", 0.0)
    examples = labelled(gallery)
    taught = sorted(_taught(view))
    current = view.manifest.current
    earlier = labelled(gallery, current.when) if current.origin == "refit" else None
    folds = [set(taught[i::_FOLDS]) for i in range(min(_FOLDS, len(taught)))]
    budget = budget_for(len(set(examples.persons.tolist()))) / (len(folds) + 1)
    before: dict[str, list[bool]] = {}
    after: dict[str, list[bool]] = {}
    for number, people in enumerate(folds):
        say(f"cross-validation, fold {number + 1} of {len(folds)}", 0.1 + 0.7 * number / len(folds))
        old = view.model if earlier is None else fit_like(view.model, earlier.without(people))
        new, _ = fit_recipe(view.model, examples.without(people), budget)
        before |= rank1_hits(old, examples, people)
        after |= rank1_hits(new, examples, people)
    say("training on everything", 0.8)
    model, why = fit_recipe(view.model, examples, budget)
    say("calibrating", 0.9)
    uncalibrated = add_calibration(model, examples.features, examples.persons, examples.cameras)
    # Hits of each person's sightings: by the model in use and the new one, of how many.
    counts = [(sum(before[one]), sum(after[one]), len(before[one])) for one in sorted(before)]
    old_hits, new_hits, asked = np.array(counts, float).T
    gained = new_hits - old_hits
    candidate = Candidate(
        model,
        examples.ids.tolist(),
        before=float(100.0 * old_hits.sum() / asked.sum()),
        after=float(100.0 * new_hits.sum() / asked.sum()),
        gain=_gain_interval(gained, asked),
        queries=int(asked.sum()),
        people=len(taught),
        p_value=sign_test(int((gained > 0).sum()), int((gained < 0).sum())),
        why=why,
        uncalibrated=uncalibrated,
    )
    note(gallery.engine, model.fingerprint, origin="refit", **candidate.figures)
    say("done", 1.0)
    return candidate


def keep_candidate(engine: Engine, candidate: Candidate) -> None:
    """Keep a refitted model in the gallery, so that any process can adopt it."""
    facts = {name: value for name, value in vars(candidate).items() if name != "model"}
    about = json.dumps(facts, allow_nan=False).encode()
    with engine.transaction():
        drop_candidate(engine)
        files = model_documents(f"{CANDIDATE}/", candidate.model)
        engine.put({CANDIDATE: about, **files}, searched=False)


def kept_candidate(engine: Engine) -> Candidate:
    """Return the refitted model that nobody uses yet."""
    about = engine.get(CANDIDATE)
    if about is None:
        raise InputError("no new model is waiting to be used; improve the model first")
    return Candidate(read_model(engine, f"{CANDIDATE}/"), **parse_json(about))


def adopt(
    gallery: Gallery, candidate: Candidate, on_step: Progress = lambda words, share: None
) -> None:
    """Use the refitted model from now on; `Gallery.undo_rebuild` goes back."""
    gallery.rebuild(
        candidate.model,
        origin="refit",
        trained_on=candidate.trained_on,
        on_step=lambda share: on_step("computing embeddings", share),
    )
    drop_candidate(gallery.engine)


def _gain_interval(gained: Floats, asked: Floats) -> tuple[float, float]:
    """Return the 95% interval of the gain in points: people are resampled, not their sightings."""
    drawn = np.random.default_rng(0).integers(0, len(asked), (_RESAMPLED, len(asked)))
    gains = 100.0 * gained[drawn].sum(axis=1) / asked[drawn].sum(axis=1)
    low, high = np.percentile(gains, [2.5, 97.5])
    return round(float(low), 2), round(float(high), 2)


def rank1_hits(model: Any, examples: Examples, people: set[str]) -> dict[str, list[bool]]:
    """Whether sightings of `people` find their person first among the other cameras' sightings.

    One answer for each sighting of each person. A tie counts as a miss. Sightings whose person no
    other camera has seen are not asked for.
    """
    D = np.array(model.distances(examples.features, examples.features), float)  # (n, n)
    D[examples.cameras[:, None] == examples.cameras] = np.inf
    same = examples.persons[:, None] == examples.persons
    right, wrong = (np.where(those, D, np.inf).min(axis=1) for those in (same, ~same))
    hits: dict[str, list[bool]] = {}
    for row, person in enumerate(examples.persons.tolist()):
        if person in people and right[row] < np.inf:
            hits.setdefault(person, []).append(bool(right[row] < wrong[row]))
    return hits


def labelled(gallery: Gallery, before: float = np.inf) -> Examples:
    """Return everything that is labelled, by answers until a moment."""
    view = gallery.view
    journal = [entry for entry in view.labels.journal if entry.when <= before]
    persons = Labels(view.table.ids, view.table.persons, journal).persons(view.table.ids.tolist())
    rows = np.flatnonzero(persons != "")
    ids = view.table.ids[rows]
    features = gallery.features(ids.tolist()).features
    return Examples(ids, features, persons[rows], view.table.cameras[rows])


def fit_recipe(like: Any, examples: Examples, budget: float) -> tuple[Any, str | None]:
    """Fit the recipe's learner on the descriptors of another model; say what it chose, and why."""
    from resight.models.fitting import fit_plan
    from resight.models.training import Training

    names, X = like.descriptors, examples.features
    widths = [part.blocks for part in like.descriptor.parts] if names else [(X.shape[1],)]
    parts = tuple(np.split(X, np.cumsum([sum(one) for one in widths])[:-1], axis=1))
    blocks = tuple(width for one in widths for width in one)
    vectors = Features(parts, names, blocks, fingerprint=digest_of(*examples.ids))
    who = Sightings(examples.ids, examples.persons, examples.cameras)
    word = learner_for(len(examples.ids))
    plan = plan_of(word, {"budget": budget} if word == LEARNER else {})
    with tempfile.TemporaryDirectory() as scratch:
        model, decision = fit_plan(
            plan, Training.own(who, vectors), names, mirror=like.mirror, scratch=Path(scratch)
        )
    return model, None if decision is None else decision.sentence


def fit_like(like: Any, examples: Examples) -> Any:
    """Fit a model's learner again on other examples; a setting that was chosen is kept."""
    from resight.models.held_out_distances import unfitted
    from resight.models.model import Model

    normalize = like.normalizer is not None
    model = Model(like.descriptors, unfitted(like.learner), mirror=like.mirror, normalize=normalize)
    return model.fit(examples.features, examples.persons, examples.cameras)
