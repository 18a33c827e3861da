"""Draw explanations of one person and of two, on synthetic cameras, for docs/explanation.md."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from resight import KXQDA
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.explanation import Explainer
from resight.explanation.drawing import strips
from resight.images import read
from resight.models.model import Model

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "explanation.png"
N_PEOPLE, N_TRAINED, SEED = 60, 40, 4
PERSON, STRANGER = "0054", "0055"


def main() -> None:
    """Write the picture and print the summaries below it."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = draw_cameras(Path(folder), n_people=N_PEOPLE, n_cameras=2, seed=SEED)
        explainer, features = _explainer(drawn)
        figure, axes = plt.subplots(1, 7, figsize=(8.6, 3.4), dpi=90)
        axes[3].axis("off")
        for place, other in ((0, PERSON), (4, STRANGER)):
            rows = [_row(drawn, PERSON, "camera-1"), _row(drawn, other, "camera-2")]
            explanation = explainer.explain_features(features[rows])
            crops = [read(drawn.files()[row]) for row in rows]
            _draw(axes[place : place + 3], explanation.to_dict(), crops)
            print(explanation.summary)
    axes[1].set_title("one person", fontsize=10)
    axes[5].set_title("two people", fontsize=10)
    figure.tight_layout(pad=0.3, w_pad=0.1)
    figure.savefig(PICTURE, metadata={"Software": ""})


def _explainer(drawn: Sightings) -> tuple[Explainer, NDArray[np.float32]]:
    """Learn from the first people; the others tell what is usual between people."""
    model = Model(("gog", "lomo-dagger"), KXQDA())
    features = model.describe(drawn.files())
    learned = drawn.persons <= f"{N_TRAINED:04d}"
    model.fit(features[learned], drawn.persons[learned], drawn.cameras[learned])
    return Explainer(model, features[~learned], drawn.persons[~learned]), features


def _row(drawn: Sightings, person: str, camera: str) -> int:
    return int(np.flatnonzero((drawn.persons == person) & (drawn.cameras == camera))[0])


def _draw(axes: NDArray[Any], told: dict[str, Any], crops: list[NDArray[np.uint8]]) -> None:
    first, middle, second = axes
    for axis, crop in ((first, crops[0]), (second, crops[1])):
        axis.imshow(crop, extent=(0, 128, 256, 0))
    middle.set(xlim=(0, 128), ylim=(256, 0), aspect="equal")
    for strip in strips(told):
        for axis in axes:
            _colour(axis, strip)
        place = (64, strip.top + strip.height / 2)
        middle.text(*place, strip.text, ha="center", va="center", fontsize=9)
    for axis in axes:
        axis.axis("off")


def _colour(axis: Axes, strip: Any) -> None:
    axis.axhspan(
        strip.top,
        strip.top + strip.height,
        facecolor=strip.colour,
        alpha=strip.opacity,
        edgecolor="white",
        linewidth=0.5,
    )


if __name__ == "__main__":
    main()
