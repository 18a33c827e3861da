from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from definitions import gog as definition
from definitions.gog import describe_in_space, embed, gog_definition, half_vector, logarithm
from resight.descriptors import descriptor
from resight.descriptors.gog import GOG_BLOCKS, feature_names, gog
from resight.errors import InputError

SPACES = {"rgb": "rgb", "lab": "lab", "hsv": "hsv", "nrng": "rg"}  # ours, the golden file's


@pytest.fixture(scope="module")
def reference(golden: Path) -> dict[str, tuple[np.ndarray, list[np.ndarray]]]:
    """Image and the four blocks of the published program, by name."""
    outputs = np.load(golden / "descriptors" / "gog.npz")
    cases = {}
    for name in sorted({key.split("|")[0] for key in outputs}):
        path = golden / "descriptors" / "images" / f"{name}.png"
        image = np.array(Pillow.open(path).convert("RGB"))
        cases[name] = image, [outputs[f"{name}|{theirs}"] for theirs in SPACES.values()]
    return cases


def relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def test_every_golden_image_in_every_colour_space(reference):
    assert len(reference) == 12
    for name, (image, blocks) in reference.items():
        ours = np.split(gog(image, resize=False), np.cumsum(GOG_BLOCKS)[:-1])
        for space, mine, theirs in zip(SPACES, ours, blocks, strict=True):
            assert relative(mine, theirs) < 2e-8, (name, space)


def test_the_definition_meets_the_golden_images(reference):
    for name in ("syn0_160x60", "black_128x48", "const_128x48"):
        image, blocks = reference[name]
        for space, theirs in zip(SPACES, blocks, strict=True):
            assert relative(describe_in_space(image, space), theirs) < 1e-8, (name, space)


def person(seed: int, height: int = 128, width: int = 48) -> np.ndarray:
    """A smooth random picture with a little noise."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 16, max(width // 16, 1), 3))
    image = coarse.repeat(16, axis=0).repeat(-(-width // coarse.shape[1]), axis=1)[:, :width]
    return np.clip(image + rng.normal(0, 4, image.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("size", [(128, 48), (16, 2), (48, 30), (256, 96)])
def test_compiled_equals_definition(size):
    image = person(1, *size)
    assert relative(gog(image, resize=False), gog_definition(image)) < 2e-8


@pytest.mark.parametrize("level", [0, 1, 127, 255])
def test_flat_images_give_finite_vectors(level):
    flat = np.full((128, 48, 3), level, np.uint8)
    assert np.isfinite(gog(flat)).all()
    assert relative(gog(flat), gog_definition(flat)) < 1e-7


@pytest.mark.parametrize("seed", range(6))
def test_extreme_colours_stay_within_the_poles(seed):
    # Saturated pixels and stripes: the largest means, gradients and covariances there are.
    rng = np.random.default_rng(seed)
    block = 2**seed
    cells = 255 * rng.integers(0, 2, (-(-128 // block), -(-48 // block), 3), np.uint8)
    image = cells.repeat(block, axis=0).repeat(block, axis=1)[:128, :48]
    assert relative(gog(image), gog_definition(image)) < 2e-8


def test_resizes_unless_told_not_to():
    image = person(3, 160, 60)
    assert gog(image).shape == gog(image, resize=False).shape == (27622,)
    assert not np.allclose(gog(image), gog(image, resize=False))


def test_a_change_in_the_lowest_rows_leaves_the_upper_strips():
    image, changed = person(4), person(4)
    changed[120:] = 255 - changed[120:]
    change = np.abs(gog(image) - gog(changed))
    strip = descriptor("gog").feature_parts().top // 16
    assert change[strip < 6].max() < 1e-8  # strip 5 ends at row 112, the last patch there at 114
    assert np.median(change[strip == 6]) > 1e-3


def test_a_gray_image_leaves_normalised_colours_constant():
    gray = person(5)[..., :1].repeat(3, axis=2)
    names = np.array(feature_names())
    # Height and r = 1/3 do not vary together, and the logarithm sees no coupling of r and g
    # beyond that of their equal means: exchanging r and g changes nothing.
    block = gog(gray)[sum(GOG_BLOCKS[:3]) :]
    labels = [n for n in names[sum(GOG_BLOCKS[:3]) :] if n.startswith("nrng:rows0-32:")]
    values = dict(zip(labels, block[::7], strict=True))
    prefix = "nrng:rows0-32:"
    assert values[prefix + "(y.r)(y.r)"] == pytest.approx(values[prefix + "(y.g)(y.g)"])
    assert values[prefix + "(M0.r)1"] == pytest.approx(values[prefix + "(M0.g)1"])


def test_names_and_parts_agree():
    names, parts = feature_names(), descriptor("gog").feature_parts()
    assert len(names) == len(set(names)) == sum(GOG_BLOCKS) == 27622
    for index in (0, 6, 7, 7567, 15134, 22701, 27621):
        space, rows, _ = names[index].split(":", 2)
        assert space == parts.channels[parts.channel[index]]
        assert rows == f"rows{parts.top[index]}-{parts.bottom[index]}"
    assert names[0] == "rgb:rows0-32:(y.y)(y.y)"
    assert names[-1] == "nrng:rows96-128:11"


def test_with_norms_every_patch_and_every_strip_counts_the_same():
    image = person(6)
    ours = np.split(gog(image, norm=True), np.cumsum(GOG_BLOCKS)[:-1])
    for space, vector in zip(SPACES, ours, strict=True):
        pixels = definition.pixel_features(image, space)
        patches = half_vector(logarithm(embed(*definition.patch_gaussians(pixels))))
        patches /= np.linalg.norm(patches, axis=-1, keepdims=True)
        strips = half_vector(logarithm(embed(*definition.strip_gaussians(patches))))  # (7, m)
        strips /= np.linalg.norm(strips, axis=1, keepdims=True)
        np.testing.assert_allclose(vector.reshape(-1, 7).T, strips, atol=1e-8)


def test_norms_and_determinants_are_one_of_all_matrices_of_the_variant():
    # A half-vector of length 1 is a logarithm of Frobenius norm 1, up to 1.4142 for the root of 2;
    # trace 0 is determinant 1.
    strips = gog(person(7), norm=True)[:7567].reshape(-1, 7)
    logs = np.zeros((7, 46, 46))
    row, column = np.triu_indices(46)
    logs[:, row, column] = logs[:, column, row] = strips.T / np.where(row == column, 1.0, 1.4142)
    np.testing.assert_allclose(np.linalg.norm(logs, axis=(1, 2)), 1.0, atol=1e-4)
    np.testing.assert_allclose(np.trace(logs, axis1=1, axis2=2), 0.0, atol=1e-8)


@pytest.mark.parametrize("size", [(120, 48), (128, 47), (1, 1)])
def test_sizes_that_do_not_fit_are_refused(size):
    with pytest.raises(InputError, match=r"multiple of 16.*resize=True"):
        gog(np.zeros((*size, 3), np.uint8), resize=False)


def test_one_pixel_is_enough_with_resizing():
    assert np.isfinite(gog(np.full((1, 1, 3), 9, np.uint8))).all()


def test_float_images_are_refused():
    with pytest.raises(InputError, match="uint8"):
        gog(np.zeros((128, 48, 3)))


def test_embedding_of_a_standard_gaussian_is_the_identity():
    matrix = embed(np.zeros(3), np.eye(3))
    np.testing.assert_allclose(matrix, np.eye(4))
    np.testing.assert_allclose(logarithm(matrix), 0.0, atol=1e-15)


def test_embedding_has_determinant_one_and_trace_free_logarithm():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 4, 4))
    matrix = embed(rng.normal(size=(5, 4)), root @ np.swapaxes(root, 1, 2))
    np.testing.assert_allclose(np.linalg.det(matrix), 1.0)
    np.testing.assert_allclose(np.trace(logarithm(matrix), axis1=1, axis2=2), 0.0, atol=1e-9)


def test_half_vector_goes_row_by_row():
    matrix = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    expected = [1.0, 2 * 1.4142, 3 * 1.4142, 4.0, 5 * 1.4142, 6.0]
    np.testing.assert_allclose(half_vector(matrix), expected)


def test_importing_does_not_load_numba():
    code = "import sys, resight.descriptors.gog; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
