"""Further questions to an evaluation: how sure is it, how many people must be labelled."""

from __future__ import annotations

from collections.abc import Sequence

from resight.errors import InputError
from resight.experiments.confidence import confidence
from resight.experiments.evaluate import Evaluation
from resight.experiments.learning_curve import curve_table, learning_curve
from resight.experiments.out_of_core import GRAM_LIMIT
from resight.experiments.runner import Plan
from resight.experiments.tables import markdown_table
from resight.features.rows import FeatureRows
from resight.features.store import Features
from resight.tuning.gram import gram_space


def add_studies(
    evaluation: Evaluation,
    feature_sets: Sequence[Features],
    plans: Sequence[Plan],
    *,
    calibrate: bool,
    curve: bool,
    sizes: Sequence[int] | None = None,
    n_jobs: int = 1,
) -> None:
    """Put ``confidence`` and ``learning_curve`` into the runs of a result document.

    Re-ranked runs have neither: their order is not that of distances.
    """
    runs = iter(evaluation.result["runs"])
    for features in feature_sets:
        source = FeatureRows(features.parts, features.blocks)
        if source.gram_bytes > GRAM_LIMIT:
            raise InputError(
                f"--calibrate and --curve fit many models in Gram space, for which {len(source):,} "
                f"sightings ({source.gram_bytes / 1e9:.0f} GB of inner products) are too many; "
                "evaluate a part of the people"
            )
        space = gram_space(features)
        for plan in plans:
            run = next(runs)
            where = (evaluation.sightings, evaluation.protocol, space, plan)
            if calibrate and plan.rerank is None:
                run["confidence"] = confidence(*where, n_jobs=n_jobs)
            if curve and plan.rerank is None:
                run["learning_curve"] = learning_curve(*where, sizes, n_jobs=n_jobs)


def studies_text(evaluation: Evaluation) -> str:
    """Tell them as text."""
    parts = []
    for run in evaluation.result["runs"]:
        if "learning_curve" in run:
            curve = run["learning_curve"]
            parts += [
                f"{run['title']}: how many people must be labelled",
                curve_table(curve),
                curve["sentence"],
            ]
    told = [run for run in evaluation.result["runs"] if "confidence" in run]
    if told:
        rows = []
        for run in told:
            first, gone = run["confidence"]["first_match"], run["confidence"]["not_in_gallery"]
            rows.append(
                [
                    run["title"],
                    f"{first['ece']:.3f}",
                    f"{first['log_loss']:.3f} ({first['log_loss_constant']:.3f})",
                    f"{first['brier']:.3f} ({first['brier_constant']:.3f})",
                    f"{100 * gone['identified']:.1f}%",
                    f"{100 * gone['false_accepts']:.1f}%",
                ]
            )
        headings = ("how sure (best constant)", "ECE", "log-loss", "Brier", "DIR", "FAR of 10%")
        parts.append(markdown_table(headings, rows))
    return "\n\n".join(parts)
