"""Plots of a result: the data first, the drawing second."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.report.result_files import read_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
_Corner = Literal["upper left", "lower right"]
COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#8a5a9e", "#b08900", "#4d5d6c", "#d17aa6", "#2a9d8f")
_SHOWN_RANKS = 20
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "resight", "font.family": "sans-serif"}
_METADATA = ("Date", "Creator", "Format", "Type")  # left out: equal data, equal bytes


class Curve(NamedTuple):
    """One run's line, in percent, with its standard deviation over splits."""

    title: str
    x: Floats  # (n,)
    mean: Floats  # (n,)
    sd: Floats  # (n,)


@dataclass
class Display:
    """Curves of a result's runs, and how they are drawn."""

    curves: tuple[Curve, ...]
    size: ClassVar[tuple[float, float]] = (7.0, 4.2)  # inches

    def plot(self, ax: Axes) -> object:
        """Draw the curves."""
        raise NotImplementedError

    def svg(self) -> str:
        """Return the plot as an inline SVG element."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        with rc_context(_STYLE):
            figure = Figure(figsize=self.size, layout="constrained")
            self.plot(figure.add_subplot())
            stream = io.StringIO()
            figure.savefig(stream, format="svg", metadata=dict.fromkeys(_METADATA))
        text = stream.getvalue()
        return text[text.index("<svg") :]


class CMCDisplay(Display):
    """CMC curves of all runs of a result; `plot` sets `ax_` and `figure_`.

    Examples
    --------
    >>> CMCDisplay.from_result("result").figure_.savefig("cmc.png")  # doctest: +SKIP
    """

    @classmethod
    def from_result(cls, result: Any, ax: Axes | None = None) -> CMCDisplay:
        """Draw the curves of a `Result`, or of the folder that it was saved in."""
        told = read_result(result) if isinstance(result, str | Path) else result.document
        return cls.from_document(told).plot(ax)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> CMCDisplay:
        """Take the curves of a `resight.result/1` document, without drawing them."""
        curves = []
        for run in document["runs"]:
            rows = [trial["curve"][:_SHOWN_RANKS] for trial in run["trials"]]
            values = np.array([row[: min(map(len, rows))] for row in rows])
            sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
            ranks = np.arange(1.0, values.shape[1] + 1)
            curves.append(Curve(run["title"], ranks, values.mean(axis=0), sd))
        return cls(tuple(curves))

    def plot(self, ax: Axes | None = None) -> CMCDisplay:
        """Draw the curves with bands of one standard deviation, on new axes if none are given."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(layout="constrained")[1]
        draw(ax, self.curves, "lower right", marker="")
        ax.set(xlabel="rank", ylabel="found, percent", xlim=(1, None), ylim=(0, 100))
        ax.set_xticks([1, 5, 10, 15, 20])
        self.ax_, self.figure_ = ax, ax.figure
        return self


def draw(ax: Axes, curves: tuple[Curve, ...], legend: _Corner, marker: str = "o") -> None:
    """Draw curves with bands of one standard deviation, in colours and then in dashes."""
    for i, (title, x, mean, sd) in enumerate(curves):
        colour, dashes = COLOURS[i % len(COLOURS)], ("-", "--", ":")[(i // len(COLOURS)) % 3]
        ax.plot(x, mean, linestyle=dashes, marker=marker, color=colour, label=title, linewidth=2)
        low, high = np.maximum(mean - sd, 0), np.minimum(mean + sd, 100)
        ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.grid(alpha=0.3)
    ax.legend(loc=legend, fontsize="small", frameon=False)


class ReliabilityDisplay(Display):
    """Stated probability of the first match against the rate at which it was right."""

    size = (5.2, 5.2)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> ReliabilityDisplay | None:
        """Take the diagrams of a result's calibrated runs; None if there are none."""
        curves = []
        for run in (run for run in document["runs"] if run.get("confidence")):
            bins = run["confidence"]["first_match"]["bins"]
            stated, true = (100.0 * np.array(bins[name]) for name in ("stated", "came_true"))
            curves.append(Curve(run["title"], stated, true, np.zeros(len(true))))
        return cls(tuple(curves)) if curves else None

    def plot(self, ax: Axes) -> None:
        """Draw one line for each run; on the diagonal what is stated comes true."""
        ax.plot([0, 100], [0, 100], color="#8a8f98", linewidth=1, linestyle="--")
        draw(ax, self.curves, "upper left")
        ax.set(xlabel="predicted probability that the first match is correct, percent")
        ax.set(ylabel="correct, percent", xlim=(0, 100), ylim=(0, 100), aspect="equal")


class LearningCurveDisplay(Display):
    """Rank 1 in percent against the number of labelled people, with its spread."""

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> LearningCurveDisplay | None:
        """Take the learning curves of a result's runs; None if there are none."""
        curves = []
        for run in (run for run in document["runs"] if run.get("learning_curve")):
            points = run["learning_curve"]["points"]
            ranks = [(p["people"], p["rank1"]["mean"], p["rank1"]["sd"] or 0) for p in points]
            curves.append(Curve(run["title"], *np.array(ranks, float).T))
        return cls(tuple(curves)) if curves else None

    def plot(self, ax: Axes) -> None:
        """Draw the curves with bands of one standard deviation, doublings equally far apart."""
        draw(ax, self.curves, "upper left")
        ticks = np.unique(np.concatenate([curve.x for curve in self.curves]))
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
        ax.minorticks_off()
        ax.set(xlabel="labelled people", ylabel="rank 1, percent", ylim=(0, 100))
