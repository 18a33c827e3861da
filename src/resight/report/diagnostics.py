"""Plots of how sure a result is and of how it grows with labels: data first, drawing second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.report.displays import COLOURS, svg

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReliabilityDisplay:
    """Stated probability of the first match against the rate at which it was right."""

    titles: tuple[str, ...]
    stated: tuple[Floats, ...]
    came_true: tuple[Floats, ...]

    @classmethod
    def from_result(cls, result: dict[str, Any]) -> ReliabilityDisplay | None:
        """Take the diagrams of a result's calibrated runs; None if there are none."""
        runs = [run for run in result["runs"] if run.get("confidence")]
        if not runs:
            return None
        bins = [run["confidence"]["first_match"]["bins"] for run in runs]
        return cls(
            tuple(run["title"] for run in runs),
            tuple(100.0 * np.array(one["stated"]) for one in bins),
            tuple(100.0 * np.array(one["came_true"]) for one in bins),
        )

    def plot(self, ax: Any) -> None:
        """Draw one line for each run; on the diagonal what is stated comes true."""
        ax.plot([0, 100], [0, 100], color="#8a8f98", linewidth=1, linestyle="--")
        for i, title in enumerate(self.titles):
            colour = COLOURS[i % len(COLOURS)]
            ax.plot(
                self.stated[i], self.came_true[i], "o-", color=colour, label=title, markersize=5
            )
        ax.set(
            xlabel="predicted probability that the first match is correct, percent",
            ylabel="correct, percent",
            xlim=(0, 100),
            ylim=(0, 100),
            aspect="equal",
        )
        ax.grid(alpha=0.3)
        ax.legend(loc="upper left", fontsize="small", frameon=False)

    def svg(self) -> str:
        """Return the plot as an inline SVG element."""
        return svg(self.plot, (5.2, 5.2))


@dataclass(frozen=True)
class LearningCurveDisplay:
    """Rank 1 in percent against the number of labelled people, with its spread."""

    titles: tuple[str, ...]
    people: tuple[Floats, ...]
    mean: tuple[Floats, ...]
    sd: tuple[Floats, ...]

    @classmethod
    def from_result(cls, result: dict[str, Any]) -> LearningCurveDisplay | None:
        """Take the learning curves of a result's runs; None if there are none."""
        runs = [run for run in result["runs"] if run.get("learning_curve")]
        if not runs:
            return None
        points = [run["learning_curve"]["points"] for run in runs]
        return cls(
            tuple(run["title"] for run in runs),
            tuple(np.array([p["people"] for p in of_run], float) for of_run in points),
            tuple(np.array([p["rank1"]["mean"] for p in of_run]) for of_run in points),
            tuple(np.array([p["rank1"]["sd"] or 0.0 for p in of_run]) for of_run in points),
        )

    def plot(self, ax: Any) -> None:
        """Draw the curves with bands of one standard deviation, doublings equally far apart."""
        for i, title in enumerate(self.titles):
            colour, people, mean = COLOURS[i % len(COLOURS)], self.people[i], self.mean[i]
            ax.plot(people, mean, "o-", color=colour, label=title, linewidth=2)
            low, high = np.maximum(mean - self.sd[i], 0), np.minimum(mean + self.sd[i], 100)
            ax.fill_between(people, low, high, color=colour, alpha=0.15, linewidth=0)
        ticks = np.unique(np.concatenate(self.people))
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
        ax.minorticks_off()
        ax.set(xlabel="labelled people", ylabel="rank 1, percent", ylim=(0, 100))
        ax.grid(alpha=0.3)
        ax.legend(loc="upper left", fontsize="small", frameon=False)

    def svg(self) -> str:
        """Return the plot as an inline SVG element."""
        return svg(self.plot, (7.0, 4.2))
