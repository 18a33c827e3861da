"""What ``--calibrate`` and ``--curve`` add to a result: calibration and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from resight.errors import InputError
from resight.experiments.confidence import confidence
from resight.experiments.learning_curve import curve_table, learning_curve
from resight.experiments.measuring import Evaluation
from resight.experiments.tables import markdown_table
from resight.features.rows import GRAM_LIMIT
from resight.tuning.gram import gram_space


def add_diagnostics(
    document: dict[str, Any],
    evaluation: Evaluation,
    calibrate: bool = False,
    curve: bool | Sequence[int] = False,
) -> None:
    """Put ``confidence`` and ``learning_curve`` into the runs of a result document.

    Re-ranked runs have neither: their order is not that of distances.
    """
    runs = iter(document["runs"])
    sizes = None if isinstance(curve, bool) else curve
    for given in evaluation.feature_sets if calibrate or curve else ():
        source = given.source
        if source.gram_bytes > GRAM_LIMIT:
            raise InputError(
                f"--calibrate and --curve fit many models in Gram space, for which {source.size} "
                "are too many; evaluate a part of the people"
            )
        space = gram_space(given.features, given.usable)
        for plan in evaluation.plans:
            run, folder = next(runs), partial(evaluation.folder, given, [plan])
            where = (evaluation.sightings, evaluation.protocol, space, plan)
            if calibrate and plan.rerank is None:
                kept = folder("confidence")
                run["confidence"] = confidence(*where, folder=kept, n_jobs=evaluation.n_jobs)
            if curve and plan.rerank is None:
                kept = folder("learning curve", repr(sizes))
                run["learning_curve"] = learning_curve(
                    *where, sizes, folder=kept, n_jobs=evaluation.n_jobs
                )


def diagnostics_text(document: dict[str, Any]) -> str:
    """Tell them as text."""
    parts = []
    for run in document["runs"]:
        if "learning_curve" in run:
            curve = run["learning_curve"]
            parts += [
                f"{run['title']}: how many people must be labelled",
                curve_table(curve),
                curve["sentence"],
            ]
    told = [run for run in document["runs"] if "confidence" in run]
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
