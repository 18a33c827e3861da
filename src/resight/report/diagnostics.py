"""Plots of how sure a result is and of how it grows with labels: data first, drawing second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from resight.report.displays import Curve, Display, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ReliabilityDisplay(Display):
    """Stated probability of the first match against the rate at which it was right."""

    size = (5.2, 5.2)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> ReliabilityDisplay | None:
        """Take the diagrams of a result's calibrated runs; None if there are none."""
        curves = []
        for run in document["runs"]:
            if run.get("confidence"):
                bins = run["confidence"]["first_match"]["bins"]
                stated, true = (100.0 * np.array(bins[name]) for name in ("stated", "came_true"))
                curves.append(Curve(run["title"], stated, true, np.zeros(len(true))))
        return cls(tuple(curves)) if curves else None

    def plot(self, ax: Axes) -> None:
        """Draw one line for each run; on the diagonal what is stated comes true."""
        ax.plot([0, 100], [0, 100], color="#8a8f98", linewidth=1, linestyle="--")
        draw(ax, self.curves, "o")
        label = "predicted probability that the first match is correct, percent"
        ax.set(
            xlabel=label, ylabel="correct, percent", xlim=(0, 100), ylim=(0, 100), aspect="equal"
        )
        ax.legend(loc="upper left", fontsize="small", frameon=False)


class LearningCurveDisplay(Display):
    """Rank 1 in percent against the number of labelled people, with its spread."""

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> LearningCurveDisplay | None:
        """Take the learning curves of a result's runs; None if there are none."""
        curves = []
        for run in document["runs"]:
            if run.get("learning_curve"):
                points = run["learning_curve"]["points"]
                people = np.array([point["people"] for point in points], float)
                mean = np.array([point["rank1"]["mean"] for point in points])
                sd = np.array([point["rank1"]["sd"] or 0.0 for point in points])
                curves.append(Curve(run["title"], people, mean, sd))
        return cls(tuple(curves)) if curves else None

    def plot(self, ax: Axes) -> None:
        """Draw the curves with bands of one standard deviation, doublings equally far apart."""
        draw(ax, self.curves, "o")
        ticks = np.unique(np.concatenate([curve.x for curve in self.curves]))
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
        ax.minorticks_off()
        ax.set(xlabel="labelled people", ylabel="rank 1, percent", ylim=(0, 100))
        ax.legend(loc="upper left", fontsize="small", frameon=False)
