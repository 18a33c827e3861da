"""Splits too large for Gram space, landmarks, and kernels that are no function of inner products.

Gram space holds the inner products of all sightings with all others. Here a learner is fitted on
the normalised features of the training rows, and embeddings of the gallery are made and compared
some at a time.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.evaluation.reranking import cross_view_reciprocal
from resight.experiments.runner import over_splits
from resight.experiments.trials import Trial, ranked
from resight.features.rows import BLOCK, GRAM_LIMIT, FeatureRows, Features
from resight.kernels import NON_NEGATIVE
from resight.learners._base import squared_euclidean
from resight.models.fitting import fit_plan
from resight.models.model import Model
from resight.models.training import Training
from resight.plans import Plan
from resight.protocols import Protocol, Split
from resight.registry import AUTO
from resight.tuning.gram import Floats
from resight.workers.executors import Executor


def exceeds_gram_space(plan: Plan, source: FeatureRows) -> bool:
    """Tell whether a plan must be measured from the features."""
    return (
        source.gram_bytes > GRAM_LIMIT
        or plan.params.get("landmarks") is not None
        or plan.params.get("kernel") in NON_NEGATIVE
    )


def check(plan: Plan, source: FeatureRows) -> None:
    """Refuse what cannot be measured from the features."""
    if plan.learner == AUTO:
        raise InputError(
            f"the learner auto compares many settings in Gram space, for which {source.size} are "
            "too many; use kxqda:cv, which chooses on some of the people, or kxqda with landmarks"
        )
    if plan.rerank not in (None, "cross-view"):
        raise InputError(
            f"{plan.rerank} re-ranking needs all distances within the gallery, for which "
            f"{source.size} are too many, or landmarks or a chi-square kernel are used; leave it "
            "out, or use cross-view"
        )


def measure(
    sightings: Sightings,
    protocol: Protocol,
    source: FeatureRows,
    plan: Plan,
    *,
    fingerprint: str,
    executor: Executor | None = None,
    scratch: Path | None = None,
    **how: Any,
) -> list[dict[str, Any]]:
    """Measure a plan on each split, one after the other; `how` is what `over_splits` takes.

    `executor` sums up the chunks of landmark fits in the folder `scratch`, which its workers
    must see; without it this process does.
    """
    features = Features(source.parts, (), source.blocks, fingerprint)
    precise = "precision" in plan.spec.make().get_params()  # float32 as in Gram space
    used = replace(plan, params={"precision": "float32", **plan.params}) if precise else plan

    def trial(split: Split) -> dict[str, Any]:
        start, seen = time.perf_counter(), sightings.select(split.train)
        training = Training([features], source.index[split.train], seen)
        with (
            nullcontext(scratch) if scratch else tempfile.TemporaryDirectory() as room,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            model, decision = fit_plan(used, training, scratch=Path(room), executor=executor)
            rankings = []
            for query, gallery in split.directions:
                D = _distances(model, source.select(query), source.select(gallery))
                D = D if plan.rerank is None else cross_view_reciprocal(D)
                rankings.append(ranked(sightings, protocol, query, gallery, D))
        seconds, said = time.perf_counter() - start, dict.fromkeys(str(w.message) for w in caught)
        params, table = dict(plan.params), None
        if decision is not None:
            table, chosen = decision.candidates, decision.chosen
            if model.learner.get_params().get("landmarks") is not None:  # whose kernel was given
                chosen = {name: chosen[name] for name in ("reg", "reg_form")}
            params |= chosen
            said |= {decision.note: None} if decision.note else {}
        return Trial(tuple(rankings), params, seconds, table, tuple(said)).to_dict(sightings)

    return over_splits(trial, protocol.splits, **how)


def _distances(model: Model, queries: FeatureRows, gallery: FeatureRows) -> Floats:
    """Return the distances (n_query, n_gallery), reading some rows at a time."""
    asked = np.concatenate([model.embed(block) for block in queries.in_blocks()])
    distances = np.empty((len(queries), len(gallery)))
    for start, block in zip(range(0, len(gallery), BLOCK), gallery.in_blocks(), strict=True):
        distances[:, start : start + BLOCK] = squared_euclidean(asked, model.embed(block))
    return distances
