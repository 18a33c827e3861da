"""WHOS against a published program, its definition and closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from definitions import whos as definition
from definitions.whos import lbp_table, whos_definition
from resight.descriptors import descriptor, whos
from resight.descriptors.whos import feature_names
from resight.errors import InputError

VARIANTS = {"dagger": "composed_dagger5138_gauss", "star": "composed_star2960_epan"}


def _image(seed: int, low: int = 0, high: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, (128, 64, 3), np.uint8)


def _half_black() -> np.ndarray:
    """Rows whose values are 0 and 1 only, which the conversion to Lab takes for 0..1."""
    image = _image(1)
    image[50:100] %= 2
    return image


def _grays() -> np.ndarray:
    return np.repeat(_image(2)[..., :1], 3, axis=2)


@pytest.mark.parametrize("variant", VARIANTS)
def test_golden(golden: Path, variant: str) -> None:
    folder = golden / "descriptors"
    with np.load(folder / "whos.npz") as reference:
        for path in sorted((folder / "images").glob("*128x64.png")):
            got = whos(np.array(Image.open(path)), variant=variant, resize=False)
            want = reference[f"{path.stem}|{VARIANTS[variant]}"]
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-6, err_msg=path.stem)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "image",
    [_image(0), _half_black(), _grays(), _image(3, 0, 2), _image(4, 250, 256)],
    ids=["noise", "half black", "grays", "almost black", "almost white"],
)
def test_kernels_equal_the_definition(image: np.ndarray, variant: str) -> None:
    want = whos_definition(image, variant)
    np.testing.assert_allclose(whos(image, variant=variant), want, rtol=0, atol=1e-12)


def test_lbp_table_is_what_uniform_means() -> None:
    table = lbp_table()
    changes = [sum((i >> k & 1) != (i >> (k + 1) % 8 & 1) for k in range(8)) for i in range(256)]
    for bits, code in enumerate(table):
        assert (code == 57) == (changes[bits] > 2)
        assert (code == 56) == (changes[bits] == 0)
    assert np.bincount(table).tolist() == [1] * 56 + [2, 198]


def test_a_sideways_ramp_has_one_orientation() -> None:
    ramp = np.tile(np.arange(0, 256, 4, dtype=np.uint8)[:, None], (128, 1, 3))
    hog = definition.hog(ramp[definition.WINDOW]).reshape(5, 13, 2, 2, 4)
    inner = hog[1:4, 2:11]  # at the border the image ends in black
    # An angle of 0 lies between the last and the first of the four bins.
    np.testing.assert_allclose(inner[..., 0], inner[..., 3])
    assert np.abs(inner[..., 1:3]).max() < 1e-12


def test_histograms_have_length_one() -> None:
    squared = whos(_image(5)) ** 2
    colours = squared[: 45 * 64].reshape(45, 64)
    np.testing.assert_allclose(np.linalg.norm(colours, axis=1), 1.0)
    blocks = squared[2880:3920].reshape(65, 16)
    np.testing.assert_allclose(np.linalg.norm(blocks, axis=1), 1.0)


def test_one_colour_fills_one_bin_per_stripe() -> None:
    image = np.full((128, 64, 3), (255, 0, 0), np.uint8)
    hs, rgb, lab = (whos(image)[:2880]).reshape(3, 15, 64)
    for part, bin_ in ((hs, 7 * 8), (rgb, 3)):
        np.testing.assert_allclose(part[:, bin_], 1.0)
    assert (np.count_nonzero(lab, axis=1) == 1).all()


def test_the_middle_counts_more_than_the_border() -> None:
    plain = np.full((128, 64, 3), 10, np.uint8)
    border, middle = plain.copy(), plain.copy()
    border[:, :4] = 200
    middle[:, 30:34] = 200
    for variant in VARIANTS:
        base = whos(plain, variant=variant)[:1920]
        moved = [np.linalg.norm(whos(i, variant=variant)[:1920] - base) for i in (border, middle)]
        assert moved[0] < moved[1] / 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_names_say_strip_channel_and_bin(variant: str) -> None:
    names, parts = feature_names(variant), descriptor(f"whos-{variant}").feature_parts()
    assert names[0] == "hs:rows0-16:h0s0"
    assert names[960 + 64 + 1] == "rgb:rows8-24:r1g0b0"
    for i in range(0, len(names), 101):
        channel, rows, *_ = names[i].split(":")
        assert channel == parts.channels[parts.channel[i]]
        assert rows == f"rows{parts.top[i]}-{parts.bottom[i]}"


def test_only_features_of_touched_rows_change() -> None:
    image = _image(8)
    changed = image.copy()
    changed[60:64] = 255 - changed[60:64]
    parts = descriptor("whos-dagger").feature_parts()
    differs = whos(image) != whos(changed)
    reach = np.where(parts.channel == 4, 16, np.where(parts.channel == 3, 8, 0)) + 1
    outside = (parts.bottom + reach <= 60) | (parts.top - reach >= 64)
    assert not differs[outside].any()
    assert differs.any()


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="128 x 64 pixels, not 128 x 48"):
        whos(np.zeros((128, 48, 3), np.uint8), resize=False)
    with pytest.raises(InputError, match="did you mean 'dagger'"):
        whos(_image(0), variant="daggers")
