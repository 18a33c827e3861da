"""Draw what the descriptors see, on the package's own synthetic person, for docs/descriptors.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import hsv_to_rgb
from matplotlib.patches import Rectangle

from resight.datasets.synthetic import draw_person
from resight.descriptors.gog import shared_features
from resight.images.arrays import resize
from resight.images.light import retinex

# The definitions in plain NumPy, stage by stage, are what the compiled code is tested against.
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from definitions import gog, lomo, whos
from definitions.colour import gray as gray_levels

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
PERSON, CAMERA = 11, 1


def main() -> None:
    """Write the three pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    person = draw_person(PERSON, camera=CAMERA)
    _save("descriptors-lomo.png", _lomo_panels(resize(person, 128, 48)))
    _save("descriptors-gog.png", _gog_panels(resize(person, 128, 48)))
    _save("descriptors-whos.png", _whos_panels(person))


Panel = tuple[str, NDArray[np.generic], Sequence[Rectangle]]


def _lomo_panels(person: NDArray[np.uint8]) -> list[Panel]:
    evened = retinex(person)
    gray = gray_levels(person) / 255.0
    blocks = [Rectangle((5 * i, 40), 10, 10) for i in range(8)]
    return [
        ("image", person, []),
        ("Retinex", evened, []),
        ("HSV bins", _bin_colours(evened), []),
        ("coarsest", _bin_colours(evened, halvings=2), []),
        ("SILTP 3", lomo.siltp(gray, 3), []),
        ("SILTP 5", lomo.siltp(gray, 5), []),
        ("one strip", evened, blocks),
    ]


def _bin_colours(image: NDArray[np.uint8], halvings: int = 0) -> NDArray[np.float64]:
    """Show every pixel in the colour at the middle of its bin."""
    bins = lomo.hsv_bins(image).astype(np.int64)
    for _ in range(halvings):
        bins = lomo.halved(bins) // 4
    return hsv_to_rgb(np.moveaxis((bins + 0.5) / lomo.LEVELS, 0, -1))


def _gog_panels(person: NDArray[np.uint8]) -> list[Panel]:
    features = shared_features(person)  # (128, 48, 5): height and four orientations
    patches = gog.half_vector(gog.logarithm(gog.embed(*gog.patch_gaussians(_rgb_pixels(person)))))
    strips = [Rectangle((1 + s % 2, 16 * s), 45, 31) for s in range(gog.N_STRIPS)]
    weights = np.tile(gog.column_weights(24), (64, 1))
    return [
        ("image", person, []),
        *((f"gradient M{k}", features[..., 1 + k], []) for k in range(4)),
        ("patches", _three_axes(patches), []),
        ("weights", weights, []),
        ("7 strips", person, strips),
    ]


def _rgb_pixels(person: NDArray[np.uint8]) -> NDArray[np.float64]:
    return np.concatenate([shared_features(person), person / 255.0], axis=2)


def _three_axes(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Show vectors by their three main directions, each stretched to 0..1."""
    flat = vectors.reshape(-1, vectors.shape[-1])
    _, _, axes = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    scores = flat @ axes[:3].T
    low, high = np.percentile(scores, [2, 98], axis=0)
    return np.clip((scores - low) / (high - low), 0, 1).reshape(*vectors.shape[:2], 3)


def _whos_panels(person: NDArray[np.uint8]) -> list[Panel]:
    magnitude, _ = whos.gradients(person)
    window = person[whos.WINDOW]
    mask = whos.centre_mask("dagger")[..., None]
    stripes = [Rectangle((1 + 2 * (s % 2), 8 * s), 60, 15) for s in range(15)]
    patterns = whos.lbp_table()[whos.neighbour_bits(gray_levels(window))]
    patterns = np.pad(np.where(patterns < 56, patterns, 0), 9)  # neither flat nor irregular
    cells = [Rectangle((8 + 8 * x, 8 + 8 * y), 8, 8) for y in range(14) for x in range(6)]
    return [
        ("image", person, []),
        ("Gaussian mask", np.rint(person * mask).astype(np.uint8), []),
        ("stripes", person, stripes),
        ("RGB bins", (person // 64 * 64 + 32).astype(np.uint8), []),
        ("gradients", magnitude, cells),
        ("LBP codes", patterns, []),
    ]


def _save(name: str, panels: list[Panel]) -> None:
    figure, axes = plt.subplots(1, len(panels), figsize=(1.15 * len(panels), 2.75), dpi=90)
    for axis, (title, picture, frames) in zip(axes, panels, strict=True):
        _show(axis, title, picture, frames)
    figure.tight_layout(pad=0.4)
    figure.savefig(FOLDER / name, metadata={"Software": ""})
    plt.close(figure)


def _show(
    axis: Axes, title: str, picture: NDArray[np.generic], frames: Sequence[Rectangle]
) -> None:
    bright = np.percentile(picture, 99) if picture.ndim == 2 else None
    axis.imshow(picture, cmap="viridis", interpolation="nearest", vmax=bright)
    for frame in frames:
        frame.set(fill=False, edgecolor="yellow", linewidth=0.7)
        axis.add_patch(frame)
    axis.set_title(title, fontsize=9)
    axis.axis("off")


if __name__ == "__main__":
    main()
