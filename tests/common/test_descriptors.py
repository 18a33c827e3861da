"""Every descriptor x every check: what users may rely on whatever descriptor they choose."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from resight.descriptors import DESCRIPTORS, GOG, LOMO, WHOS, descriptor
from resight.errors import InputError

WIDTHS = {"lomo": 26960, "lomo-dagger": 26960, "gog": 27622, "whos-star": 2960, "whos-dagger": 5138}
EACH = pytest.mark.parametrize("name", DESCRIPTORS)


def _photo(height: int = 128, width: int = 64, seed: int = 0) -> np.ndarray:
    """Coloured patches with noise: edges, flat parts and texture."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 16 + 1, width // 16 + 1, 3))
    patches = np.repeat(np.repeat(coarse, 16, 0), 16, 1)[:height, :width]
    return np.clip(patches + rng.normal(0, 8, patches.shape), 0, 255).astype(np.uint8)


def test_all_five_are_there() -> None:
    assert {name: descriptor(name).n_features for name in WIDTHS} == WIDTHS
    assert DESCRIPTORS.keys() >= WIDTHS.keys()


@EACH
def test_vectors_are_finite_float32_of_the_promised_width(name: str) -> None:
    photos = [_photo(), _photo(160, 60), _photo(40, 40), _photo(1, 1), _photo(300, 20)]
    features = descriptor(name).transform(photos)
    assert features.shape == (5, descriptor(name).n_features)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()


@EACH
@pytest.mark.parametrize("level", [0, 1, 127, 255])
def test_one_colour_gives_finite_vectors(name: str, level: int) -> None:
    vector = descriptor(name, mirror=True).describe(np.full((128, 48, 3), level, np.uint8))
    assert vector.dtype == np.float64
    assert np.isfinite(vector).all()
    assert vector.any()


@EACH
def test_the_same_image_gives_the_same_vector(name: str) -> None:
    chosen = descriptor(name)
    photo = _photo(150, 70)
    first = chosen.describe(photo)
    chosen.describe(_photo(seed=9))  # nothing is remembered between images
    np.testing.assert_array_equal(chosen.describe(photo), first)
    np.testing.assert_array_equal(chosen.describe(photo.copy(order="F")), first)


@EACH
def test_the_image_is_left_alone(name: str) -> None:
    photo = _photo()
    photo.flags.writeable = False
    descriptor(name, mirror=True).describe(photo)


@EACH
def test_threads_change_nothing(name: str) -> None:
    photos = [_photo(seed=seed) for seed in range(12)]
    chosen = descriptor(name)
    one, two = (chosen.extract(photos, n_jobs=n).features for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one[3], chosen.describe(photos[3]).astype(np.float32))


@EACH
def test_paths_arrays_and_streams_are_the_same(name: str, tmp_path: Path) -> None:
    photo = _photo()
    Image.fromarray(photo).save(tmp_path / "Größe 人.png")
    stream = BytesIO((tmp_path / "Größe 人.png").read_bytes())
    rows = descriptor(name).transform([photo, tmp_path / "Größe 人.png", stream])
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])


@EACH
def test_mirror_is_the_mean_and_forgets_the_side(name: str) -> None:
    plain, both = descriptor(name), descriptor(name, mirror=True)
    photo = _photo(128, 48 if name in ("lomo", "lomo-dagger", "gog") else 64)
    turned = np.ascontiguousarray(photo[:, ::-1])
    mean = (plain.describe(photo) + plain.describe(turned)) / 2
    np.testing.assert_allclose(both.describe(photo), mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(both.describe(turned), mean, rtol=1e-12, atol=1e-14)


@EACH
def test_different_people_differ(name: str) -> None:
    chosen = descriptor(name)
    a, b = chosen.describe(_photo(seed=1)), chosen.describe(_photo(seed=2))
    assert np.linalg.norm(a - b) > 0.1 * np.linalg.norm(a)


@EACH
def test_names_and_parts_describe_every_feature(name: str) -> None:
    chosen = descriptor(name)
    names, parts = chosen.get_feature_names_out(), chosen.feature_parts()
    assert len(names) == len(set(names)) == chosen.n_features == sum(chosen.blocks)
    for column in (parts.top, parts.bottom, parts.channel):
        assert column.shape == (chosen.n_features,)
    assert (parts.top >= 0).all()
    assert (parts.bottom <= parts.height).all()
    assert (parts.top < parts.bottom).all()
    assert set(np.unique(parts.channel)) == set(range(len(parts.channels)))


@EACH
def test_the_fingerprint_follows_all_that_decides_the_numbers(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = descriptor(name)
    before = chosen.fingerprint
    assert descriptor(name).fingerprint == before
    assert descriptor(name, mirror=True).fingerprint != before
    monkeypatch.setattr(type(chosen), "version", chosen.version + 1)
    assert chosen.fingerprint != before
    monkeypatch.undo()
    monkeypatch.setattr("resight.images.VERSION", 1000)
    assert chosen.fingerprint != before


def test_fingerprints_differ() -> None:
    assert len({descriptor(name).fingerprint for name in DESCRIPTORS}) == len(DESCRIPTORS)


@EACH
def test_it_is_a_scikit_learn_transformer(name: str) -> None:
    chosen = descriptor(name)
    assert clone(chosen).fingerprint == chosen.fingerprint
    assert repr(chosen).startswith(type(chosen).__name__)
    photos = np.stack([_photo(), _photo(seed=1)])  # (2, 128, 64, 3)
    pipeline = make_pipeline(chosen, FunctionTransformer())
    assert pipeline.fit_transform(photos).shape == (2, chosen.n_features)


@EACH
def test_no_image_at_all(name: str) -> None:
    assert descriptor(name).transform([]).shape == (0, descriptor(name).n_features)


@EACH
@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("one.png", r"\['one.png'\]"),
        (Path("one.png"), r"\['one.png'\]"),
        (np.zeros((8, 8, 3), np.uint8), r"\[image\]"),
        (None, "not NoneType"),
        ([np.zeros((8, 8, 3))], "image 0: an image must be uint8"),
        ([np.full((8, 8, 3), np.nan)], "NaN"),
        (["missing.png"], "does not exist"),
        ([3], "not as int"),
    ],
)
def test_bad_input_says_what_to_give(name: str, given: object, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        descriptor(name).transform(given)  # type: ignore[arg-type]


def test_unknown_names_and_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'lomo-dagger'"):
        descriptor("lomo-daggers")
    for wrong in (LOMO(retinex="yes"), GOG(mirror=3), WHOS(variant="moon")):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="must be"):
            wrong.fit()
        with pytest.raises(ValueError, match="must be"):
            wrong.extract([_photo()])
