"""LOMO against the published program, its definition and closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from definitions import lomo as definition
from definitions.colour import gray as gray_levels
from definitions.lomo import lomo_definition
from resight.descriptors import _lomo_kernels as compiled
from resight.descriptors import descriptor, lomo
from resight.descriptors.lomo import feature_names, scale_sizes
from resight.errors import InputError
from resight.images import colour
from resight.images.light import retinex

UNIT = np.arange(256) / 255.0


def _image(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def _blocks(height: int, width: int) -> np.ndarray:
    """Coloured patches, so that codes repeat as they do in photographs."""
    coarse = np.random.default_rng(7).integers(
        0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8
    )
    return np.repeat(np.repeat(coarse, 8, 0), 8, 1)[:height, :width].copy()


def test_golden(golden: Path) -> None:
    folder = golden / "descriptors"
    with np.load(folder / "lomo.npz") as reference:
        for path in sorted((folder / "images").glob("*.png")):
            image = np.array(Image.open(path))
            evened = np.array(Image.open(folder / "retinex" / path.name))
            for what, given in (("lomo_dagger", False), ("lomo", evened)):
                got = lomo(image, retinex=given, resize=False)
                np.testing.assert_allclose(
                    got, reference[f"{path.stem}|{what}"], rtol=0, atol=1e-12, err_msg=path.stem
                )


@pytest.mark.parametrize("size", [(128, 48), (160, 60), (128, 40), (37, 23), (10, 10), (11, 80)])
@pytest.mark.parametrize("make", [_image, _blocks])
def test_kernels_equal_the_definition(size: tuple[int, int], make: object) -> None:
    image = make(*size)  # type: ignore[operator]
    got = lomo(image, retinex=False, resize=False)
    np.testing.assert_allclose(got, lomo_definition(image, image), rtol=0, atol=1e-13)


def test_quantised_maps_are_exact() -> None:
    levels = np.arange(0, 256, 5)
    cube = np.stack(np.meshgrid(levels, levels, levels), -1).reshape(52, -1, 3).astype(np.uint8)
    np.testing.assert_array_equal(compiled.hsv_bins(cube, UNIT), definition.hsv_bins(cube))
    gray = compiled.gray_levels(cube, colour.GRAY_WEIGHTS) / 255.0
    np.testing.assert_array_equal(gray, gray_levels(cube) / 255.0)


@pytest.mark.parametrize("radius", [3, 5])
def test_siltp_is_exact(radius: int) -> None:
    gray = gray_levels(_blocks(64, 32)) / 255.0
    np.testing.assert_array_equal(
        compiled.siltp_codes(gray, radius), definition.siltp(gray, radius)
    )


def test_siltp_ignores_the_brightness_of_the_light() -> None:
    gray = np.random.default_rng(0).random((40, 30))
    np.testing.assert_array_equal(
        compiled.siltp_codes(gray, 3), compiled.siltp_codes(gray / 4.0, 3)
    )


def test_the_colour_part_comes_from_the_retinex_image() -> None:
    image = _blocks(128, 48)
    np.testing.assert_array_equal(lomo(image), lomo(image, retinex=retinex(image)))
    plain = lomo(image, retinex=False)
    assert not np.array_equal(lomo(image)[:20480], plain[:20480])
    np.testing.assert_array_equal(lomo(image)[20480:], plain[20480:])


def test_moving_sideways_by_whole_block_steps_changes_nothing() -> None:
    image = np.zeros((128, 48, 3), np.uint8)
    image[40:60, 10:18] = _image(20, 8)
    moved = np.roll(image, 20, axis=1)  # blocks start every 5, 10 and 20 pixels
    hsv = slice(0, 20480)
    np.testing.assert_array_equal(lomo(image, retinex=False)[hsv], lomo(moved, retinex=False)[hsv])


def test_one_colour_fills_one_bin_per_strip() -> None:
    image = np.full((128, 48, 3), 200, np.uint8)  # gray: hue 0, saturation 0, value bin 6
    hsv = lomo(image, retinex=False)[:20480].reshape(40, 512)
    assert (hsv[:, 6 * 64] > 0).all()
    assert np.count_nonzero(hsv) == 40
    np.testing.assert_allclose(hsv[:, 6 * 64], 1 / np.sqrt(40))


def test_every_part_has_length_one() -> None:
    vector = lomo(_image(128, 48))
    parts = np.split(vector, [20480, 23720])
    np.testing.assert_allclose([np.linalg.norm(part) for part in parts], 1.0)


def test_dimension_follows_the_height() -> None:
    assert lomo(_image(160, 60), resize=False).shape == (35722,)
    assert lomo(_image(160, 60)).shape == (26960,)
    assert scale_sizes(160, 60) == [(160, 60), (80, 30), (40, 15)]
    narrow = lomo(_image(128, 40), retinex=False, resize=False)
    assert len(narrow) == 26960 - 5 * 81  # the last scale is too narrow for radius 5


def test_names_say_strip_channel_and_bin() -> None:
    names, parts = feature_names(), descriptor("lomo").feature_parts()
    assert names[1] == "hsv:scale0:rows0-10:h1s0v0"
    assert names[20480 + 81 + 2] == "siltp3:scale0:rows5-15:e2n0w0s0"
    assert names[-1] == "siltp5:scale2:rows80-120:e2n2w2s2"
    for i in range(0, len(names), 997):
        channel, _, rows, _ = names[i].split(":")
        assert channel == parts.channels[parts.channel[i]]
        assert rows == f"rows{parts.top[i]}-{parts.bottom[i]}"


def test_only_features_of_touched_rows_change() -> None:
    image = _blocks(128, 48)
    changed = image.copy()
    changed[60:64] = 255 - changed[60:64]
    parts = descriptor("lomo").feature_parts()
    # The length of a part is shared by all its rows, so compare directions only.
    before, after = (lomo(i, retinex=False)[:20480] for i in (image, changed))
    outside = ((parts.bottom <= 60) | (parts.top >= 64))[:20480]
    ratio = after[outside & (before > 0)] / before[outside & (before > 0)]
    np.testing.assert_allclose(ratio, ratio[0])


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="at least 10 x 10"):
        lomo(_image(9, 30), resize=False)
    with pytest.raises(InputError, match="same size"):
        lomo(_image(128, 48), retinex=_image(64, 48))
    with pytest.raises(InputError, match="uint8"):
        lomo(np.zeros((128, 48, 3)))
