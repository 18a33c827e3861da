"""Plans: a learner with its parameters or candidates, as `evaluate` measures and `fit` fits it.

The recipe is what is used where the user names none. `evaluate`, `fit`, the demo, retraining on the
page and the Python functions all read it here, so that what is measured is what is fitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from resight.errors import InputError, unknown_name
from resight.registry import AUTO, LearnerSpec, learner_spec
from resight.tuning.candidates import AUTO_ROWS, CV, CV_FOLDS, Candidate

DESCRIPTOR = "gog+lomo-dagger+whos-dagger"
MIRROR = False  # the learner `auto` compares with features averaged over mirror images by itself
LEARNER = AUTO
LARGE_LEARNER = "kxqda:cv"  # chooses on some of the people, and goes through landmarks if need be
LARGE = AUTO_ROWS  # labelled sightings up to which `auto` learns from all of them
_SECONDS = (30.0, 600.0)  # of a choice, at least and at most

RERANKERS = ("k-reciprocal", "cross-view", "ssm", "ol-mans")
FROM_TRAINING = ("ssm", "ol-mans")  # which look at training sightings besides


def learner_for(n_sightings: int) -> str:
    """Return the learner for a number of labelled sightings."""
    return LEARNER if n_sightings <= LARGE else LARGE_LEARNER


def budget_for(n_people: int) -> float:
    """Return the seconds that choosing may take: one for each person, within bounds.

    >>> budget_for(12), budget_for(110), budget_for(5000)
    (30.0, 110.0, 600.0)
    """
    least, most = _SECONDS
    return min(max(least, float(n_people)), most)


@dataclass(frozen=True)
class Plan:
    """A learner with its parameters, or with candidates to choose from: a row of a result."""

    learner: str
    version: str = "default"
    params: dict[str, Any] = field(default_factory=dict, hash=False)
    candidates: tuple[Candidate, ...] = ()
    n_folds: int = 3
    rerank: str | None = None  # post-processing that uses the gallery; see RERANKERS
    budget: float | None = None  # seconds of a choice, where the parameters say nothing about it

    @property
    def word(self) -> str:
        """What `--learner` calls it."""
        return self.learner if self.version == "default" else f"{self.learner}:{self.version}"

    @property
    def spec(self) -> LearnerSpec:
        """The registered learner."""
        return learner_spec(self.learner)

    @property
    def normalize(self) -> bool:
        """Whether descriptors are block-normalised first."""
        return self.spec.normalizes(self.params)

    def within_budget(self, n_people: int) -> Plan:
        """Return the plan with the recipe's budget for a choice among so many people."""
        return replace(self, budget=budget_for(n_people)) if self.learner == AUTO else self

    def require_fixed(self) -> None:
        """Refuse to go on if a setting is chosen in each split: each fit would choose again."""
        if self.candidates or self.learner == AUTO or self.params.get("landmarks"):
            raise InputError(
                f"{self.word} has no fixed setting in Gram space; learning curves and calibration "
                "fit many models and need one: name a learner, such as --learner kxqda,xqda"
            )


def plans_of(
    learners: str | Sequence[str | Plan],
    params: Mapping[str, Mapping[str, object]],
    rerank: str | Sequence[str] = (),
) -> list[Plan]:
    """Return one plan for each learner, and one more for each re-ranking of it.

    Names are separated by ``,``; ``kxqda:cv`` chooses kernel, width and regulariser in each split
    by cross-validation over its training people. `params` are given by the learner's name.
    """
    words, rerankers = listed(learners), listed(rerank)
    for name in rerankers:
        if name not in RERANKERS:
            raise unknown_name("re-ranking", name, RERANKERS)
    names = [word.partition(":")[0] if isinstance(word, str) else word.learner for word in words]
    unused = sorted(set(params) - set(names))
    if unused:
        raise InputError(
            f"parameters given for {unused[0]!r}, which is not among the learners "
            f"{', '.join(names)}"
        )
    plain = [
        plan_of(word, params.get(name, {})) if isinstance(word, str) else word
        for word, name in zip(words, names, strict=True)
    ]
    return [replace(plan, rerank=name) for plan in plain for name in (plan.rerank, *rerankers)]


def listed(words: str | Sequence[Any]) -> list[Any]:
    """Return a list of what is given as one string, separated by ``,``, or as a sequence."""
    if not isinstance(words, (str, Iterable)):
        raise InputError(f"{words!r}: give a name, or several")
    return words.split(",") if isinstance(words, str) else list(words)


def plan_of(word: str, params: Mapping[str, object]) -> Plan:
    """Return the plan of one learner, such as ``kxqda`` or ``kxqda:cv``, with its parameters."""
    name, _, version = word.partition(":")
    own = dict(params)
    learner_spec(name).make(**own)  # wrong names are refused before any work
    if version == "":
        for known in sorted({"blocks", "setting"} & own.keys()) if name == AUTO else ():
            raise InputError(
                f"{known!r} is a parameter of AutoKXQDA in Python only: here blocks are known "
                "from the descriptors, and the setting is chosen"
            )
        return Plan(name, params=own)
    if version != "cv" or name != "kxqda":
        raise InputError(f"{word!r}: ':cv' is for kxqda; write {name!r} for its defaults")
    chosen = {"reg", "reg_form"}
    if not own.get("landmarks"):  # through which only the regulariser is chosen
        chosen |= {"kernel", "width", "degree"}
    for given in sorted(chosen & own.keys()):
        raise InputError(
            f"{word!r} chooses {given} itself, but {given}={own[given]} is given; leave out the "
            "parameter, or ':cv'"
        )
    return Plan(name, "cv", own, CV, CV_FOLDS)


def params_by_learner(assignments: Sequence[str], learners: str) -> dict[str, dict[str, Any]]:
    """Read ``learner.name=value``; the learner may be left out where there is one only.

    Values are JSON where they parse, else text.
    """
    from resight.validation import parse_json  # NumPy, which `resight --help` does without

    names = [word.partition(":")[0] for word in listed(learners)]
    params: dict[str, dict[str, Any]] = {}
    for word in assignments:
        given, equals, text = word.partition("=")
        if not equals:
            raise InputError(f"{word!r} is not a parameter; write name=value, such as reg=1e-3")
        learner, dot, key = given.partition(".")
        if not dot and len(names) > 1:
            raise InputError(
                f"--param {given}: with several learners write which of them, such as "
                f"{names[0]}.{given}"
            )
        try:
            value = parse_json(text)
        except ValueError:
            value = text
        params.setdefault(learner if dot else names[0], {})[key if dot else given] = value
    return params
