"""Plans: which learner is measured in each split, with which parameters or candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from resight.errors import InputError, unknown_name
from resight.registry import AUTO, LearnerSpec, learner_spec
from resight.tuning.candidates import CV, CV_FOLDS, Candidate

RERANKERS = ("k-reciprocal", "cross-view")


@dataclass(frozen=True)
class Plan:
    """One row of a result: a learner with its parameters, or with candidates to choose from."""

    learner: str
    version: str = "default"
    params: dict[str, Any] = field(default_factory=dict, hash=False)
    candidates: tuple[Candidate, ...] = ()
    n_folds: int = 3
    rerank: str | None = None  # post-processing that uses the gallery; see RERANKERS

    @property
    def spec(self) -> LearnerSpec:
        """The registered learner."""
        return learner_spec(self.learner)

    @property
    def normalize(self) -> bool:
        """Whether descriptors are block-normalised first."""
        return self.spec.normalizes(self.params)

    def require_fixed(self) -> None:
        """Refuse to go on if a setting is chosen in each split: each fit would choose again."""
        if self.candidates or self.learner == AUTO or self.params.get("landmarks"):
            raise InputError(
                f"{self.learner} ({self.version}) has no fixed setting in Gram space; learning "
                "curves and calibration need one, such as kxqda with --param kxqda.reg=1e-3"
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
    plain = [_plan(word, params) if isinstance(word, str) else word for word in words]
    for plan in plain:
        _refuse_python_only(plan)
    return [replace(plan, rerank=name) for plan in plain for name in (plan.rerank, *rerankers)]


def listed(words: str | Sequence[Any]) -> list[Any]:
    """Return a list of what is given as one string, separated by ``,``, or as a sequence."""
    if not isinstance(words, (str, Iterable)):
        raise InputError(f"{words!r}: give a name, or several")
    return words.split(",") if isinstance(words, str) else list(words)


def _plan(word: str, params: Mapping[str, Mapping[str, object]]) -> Plan:
    name, _, version = word.partition(":")
    own = dict(params.get(name, {}))
    learner_spec(name).make(**own)  # wrong names are refused before any work
    if version == "":
        return Plan(name, params=own)
    if version == "cv" and name == "kxqda":
        _refuse_chosen(word, own)
        return Plan(name, "cv", own, CV, CV_FOLDS)
    raise InputError(f"{word!r}: ':cv' is for kxqda; write {name!r} for its defaults")


def _refuse_chosen(word: str, params: dict[str, Any]) -> None:
    """Refuse parameters that cross-validation would overwrite."""
    regulariser = {"reg", "reg_form"}  # all that is chosen through landmarks
    chosen = regulariser if params.get("landmarks") else regulariser | {"kernel", "width", "degree"}
    given = sorted(chosen & set(params))
    if given:
        raise InputError(
            f"{word!r} chooses {given[0]} itself, but {given[0]}={params[given[0]]} is given; "
            "leave out the parameter, or ':cv'"
        )


def _refuse_python_only(plan: Plan) -> None:
    for name in ("blocks", "setting") if plan.learner == AUTO else ():
        if name in plan.params:
            raise InputError(
                f"{name!r} is a parameter of AutoKXQDA in Python only: here blocks are known "
                "from the descriptors, and the setting is chosen in each split"
            )
