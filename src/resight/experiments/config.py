"""Settings of an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from resight.errors import InputError, unknown_name
from resight.experiments.runner import RERANKERS, Plan
from resight.learners.registry import learner_spec
from resight.tuning.candidates import CV, CV_FOLDS


class EvaluateConfig(BaseModel):
    """What to evaluate; unknown keys are refused.

    A learner is a name, optionally with ``:cv`` to choose kernel, width and regulariser in each
    split by cross-validation over its training people (k-XQDA only).
    """

    model_config = ConfigDict(extra="forbid")

    dataset: str | None = None
    root: Path | None = None
    descriptors: list[str] = Field(default=["gog"], min_length=1)
    learners: list[str] = Field(default=["kxqda"], min_length=1)
    params: dict[str, dict[str, Any]] = {}
    protocol: str | None = None
    splits: Path | None = None
    features: Path | None = None
    mirror: bool = False
    rerank: list[str] = []

    def plans(self) -> list[Plan]:
        """Return one plan for each learner, and one more for each re-ranking of it."""
        for name in self.rerank:
            if name not in RERANKERS:
                raise unknown_name("re-ranking", name, RERANKERS)
        unused = set(self.params) - {word.partition(":")[0] for word in self.learners}
        if unused:
            raise InputError(
                f"parameters given for {sorted(unused)[0]!r}, which is not among the learners "
                f"{', '.join(self.learners)}"
            )
        plain = [self._plan(word) for word in self.learners]
        return [
            Plan(p.learner, p.version, p.params, p.candidates, p.n_folds, rerank)
            for p in plain
            for rerank in (None, *self.rerank)
        ]

    def _plan(self, word: str) -> Plan:
        name, _, version = word.partition(":")
        params = self.params.get(name, {})
        learner_spec(name).make(**params)  # wrong names are refused before any work
        if version == "":
            return Plan(name, params=params)
        if version == "cv" and name == "kxqda":
            _refuse_chosen(word, params)
            return Plan(name, "cv", params, CV, CV_FOLDS)
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


def checked_config(settings: dict[str, Any]) -> EvaluateConfig:
    """Check settings; every problem is named with what is allowed."""
    try:
        return EvaluateConfig.model_validate(settings)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            raise unknown_name("setting", key, EvaluateConfig.model_fields) from None
        raise InputError(f"setting {key!r}: {problem['msg']}") from None
