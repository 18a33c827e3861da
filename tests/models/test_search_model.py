"""A model made of its saved state embeds as the model itself does, to the last digit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight import KXQDA, XQDA, AutoKXQDA, BlockNormalizer
from resight.errors import StoreError
from resight.models.files import VERSIONS, SearchModel, open_model
from resight.models.model import Model
from resight.tuning.candidates import XQDA as XQDA_CANDIDATE
from resight.tuning.settings import Part, Setting

WIDTHS = (20, 12)
EACH = Part("kxqda", (1.0, 1.0), (XQDA_CANDIDATE,), blocks=True)
MIXED = Setting(((0.8, EACH), (0.2, Part("euclidean", (1.0, 0.5)))))
BLOCK_BY_BLOCK = json.loads(json.dumps(MIXED.as_dict(), sort_keys=True))  # as a file has it


def fitted(learner: Any, normalize: bool = True) -> tuple[Model, np.ndarray]:
    rng = np.random.default_rng(0)
    persons = np.tile(np.arange(24), 2)
    X = rng.normal(size=(24, 32))[persons] + 0.5 * rng.normal(size=(48, 32))
    rows = X.astype(np.float32)
    how = BlockNormalizer(WIDTHS) if normalize else False
    model = Model((), learner, normalize=how).fit(rows, persons, np.repeat(["a", "b"], 24))
    return model, rows


def opened(model: Model, folder: Path) -> Any:
    model.save(folder)
    return open_model(lambda name: (folder / name).read_bytes(), folder)


@pytest.mark.parametrize(
    "learner",
    [
        KXQDA(),
        KXQDA(kernel="linear", n_components=5),
        KXQDA(kernel="poly"),
        KXQDA(landmarks=8),
        AutoKXQDA(blocks=[(20,), (12,)], n_repeats=1),
        AutoKXQDA(blocks=[(20,), (8, 4)], setting=BLOCK_BY_BLOCK),
    ],
    ids=str,
)
@pytest.mark.parametrize("normalize", [True, False])
def test_it_embeds_as_the_model_does(learner: Any, normalize: bool, tmp_path: Path) -> None:
    model, rows = fitted(learner, normalize)
    light = opened(model, tmp_path / "model")
    assert isinstance(light, SearchModel)
    for n in (1, 3, 48):
        np.testing.assert_array_equal(light.embed(rows[:n]), model.embed(rows[:n]))
    assert "whole" not in vars(light)  # the learner was not needed
    assert light.descriptor_fingerprint == model.descriptor_fingerprint
    assert light.n_features == model.n_features == 32
    assert light.fingerprint == model.fingerprint  # of the whole model
    np.testing.assert_array_equal(light.distances(rows[:2], rows), model.distances(rows[:2], rows))


def test_what_it_cannot_embed_is_refused_as_by_the_model(tmp_path: Path) -> None:
    model, rows = fitted(KXQDA())
    light = opened(model, tmp_path / "model")
    with pytest.raises(ValueError, match="NaN"):
        light.embed(np.full((1, 32), np.nan))
    with pytest.raises(ValueError, match="features"):
        light.embed(rows[:, :5])
    with pytest.raises(AttributeError):
        _ = light.nonsense


def test_other_learners_are_loaded_as_they_are(tmp_path: Path) -> None:
    model, rows = fitted(XQDA())
    whole = opened(model, tmp_path / "model")
    assert isinstance(whole, Model)
    np.testing.assert_array_equal(whole.embed(rows), model.embed(rows))


def test_damage_is_found(tmp_path: Path) -> None:
    model, _ = fitted(KXQDA())
    model.save(tmp_path / "model")

    def damaged(name: str) -> bytes:
        content = bytearray((tmp_path / "model" / name).read_bytes())
        if name.endswith(".safetensors"):
            content[len(content) // 2] ^= 1
        return bytes(content)

    with pytest.raises(StoreError, match="digest differs"):
        open_model(damaged, "here")
    with pytest.raises(StoreError, match="here"):
        open_model(lambda name: b"", "here")


def test_the_versions_are_those_of_the_classes() -> None:
    from resight.learners._landmark_sums import LandmarkStatistics
    from resight.learners._landmarks import NystromMap

    known = (Model, BlockNormalizer, KXQDA, AutoKXQDA, NystromMap, LandmarkStatistics)
    classes = {one.__name__: one for one in known}
    assert {name: one.state_version for name, one in classes.items()} == VERSIONS
