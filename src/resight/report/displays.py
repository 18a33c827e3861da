"""Plots of a result: the data first, the drawing second."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#8a5a9e", "#b08900", "#4d5d6c", "#d17aa6", "#2a9d8f")
_SHOWN_RANKS = 20
_METADATA = ("Date", "Creator", "Format", "Type")  # left out: equal data, equal bytes


@dataclass(frozen=True)
class CMCCurve:
    """Cumulative match characteristic of one run, in percent, with its spread over splits."""

    title: str
    mean: Floats  # (n_ranks,)
    sd: Floats  # (n_ranks,)


@dataclass(frozen=True)
class CMCDisplay:
    """CMC curves of all runs of a result."""

    curves: tuple[CMCCurve, ...]

    @classmethod
    def from_result(cls, result: dict[str, Any]) -> CMCDisplay:
        """Take the curves of a `resight.result/1` document."""
        curves = []
        for run in result["runs"]:
            rows = [trial["curve"][:_SHOWN_RANKS] for trial in run["trials"]]
            values = np.array([row[: min(map(len, rows))] for row in rows])
            sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
            curves.append(CMCCurve(run["title"], values.mean(axis=0), sd))
        return cls(tuple(curves))

    def plot(self, ax: Any) -> None:
        """Draw the curves with bands of one standard deviation."""
        for i, curve in enumerate(self.curves):
            ranks = np.arange(1, len(curve.mean) + 1)
            colour = COLOURS[i % len(COLOURS)]
            style = ("-", "--", ":")[(i // len(COLOURS)) % 3]
            ax.plot(ranks, curve.mean, style, color=colour, label=curve.title, linewidth=2)
            low, high = curve.mean - curve.sd, curve.mean + curve.sd
            ax.fill_between(
                ranks, low, np.minimum(high, 100), color=colour, alpha=0.15, linewidth=0
            )
        ax.set(xlabel="rank", ylabel="matched, percent", xlim=(1, None), ylim=(0, 100))
        ax.set_xticks([1, 5, 10, 15, 20])
        ax.grid(alpha=0.3)
        ax.legend(loc="lower right", fontsize="small", frameon=False)

    def svg(self) -> str:
        """Return the plot as an inline SVG element."""
        return svg(self.plot, (7.0, 4.2))


def svg(draw: Any, size: tuple[float, float]) -> str:
    """Draw on new axes and return the plot as an inline SVG element."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "resight", "font.family": "sans-serif"}
    ):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata=dict.fromkeys(_METADATA))
    text = stream.getvalue()
    return text[text.index("<svg") :]
