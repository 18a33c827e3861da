"""Settings of an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from resight.errors import InputError, unknown_name
from resight.experiments.plans import Plan, plans_of


class EvaluateConfig(BaseModel):
    """What to evaluate, in the words of `resight.evaluate`; unknown keys are refused."""

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
        """Return what is measured, checked."""
        return plans_of(self.learners, self.params, self.rerank)


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
