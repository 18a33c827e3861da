from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import resight
from resight import KXQDA
from resight.descriptors import Network, descriptor
from resight.errors import InputError, StoreError
from resight.explanation import Explainer
from resight.features.store import FeatureStore
from resight.models.model import Model
from resight.networks.files import network_files
from resight.networks.session import Session
from resight.workers.executors import local
from tiny_networks import embedder, node, save

Photos = list[np.ndarray]


@pytest.fixture
def photos() -> Photos:
    rng = np.random.default_rng(3)
    return [rng.integers(0, 256, (80 + i, 40, 3), dtype=np.uint8) for i in range(11)]


def test_a_vector_is_what_the_graph_makes_of_the_prepared_image(
    tmp_path: Path, photos: Photos
) -> None:
    network = Network(embedder(tmp_path / "osnet.onnx", length=5))
    assert (network.name, network.n_features, network.blocks) == ("osnet", 5, (5,))
    vectors = network.transform(photos)
    assert (vectors.shape, vectors.dtype) == ((11, 5), np.float32)
    [by_hand] = Session(tmp_path / "osnet.onnx").run(network.preprocessing.batch(photos))
    assert np.allclose(vectors, by_hand, atol=1e-5)
    flipped = [np.ascontiguousarray(photo[:, ::-1]) for photo in photos]
    both = (vectors + network.transform(flipped)) / 2
    assert np.allclose(descriptor(network, mirror=True).transform(photos), both, atol=1e-5)
    assert clone(network).fingerprint == network.fingerprint


@pytest.mark.parametrize("batch", [1, 8, "batch"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_graphs_of_any_batch_and_precision_agree(
    tmp_path: Path, photos: Photos, batch: Any, dtype: Any
) -> None:
    wanted = Network(embedder(tmp_path / "any.onnx")).transform(photos)
    network = Network(embedder(tmp_path / "fixed.onnx", batch=batch, dtype=dtype))
    assert network.batch == (8 if batch == "batch" else batch)
    assert np.allclose(
        network.transform(photos), wanted, atol=0.05 if dtype != np.float32 else 1e-5
    )


def test_outputs_are_chosen_and_pooled(tmp_path: Path, photos: Photos) -> None:
    nodes = [
        node("AveragePool", "images", "places", kernel_shape=[4, 4], strides=[4, 4]),
        node("GlobalAveragePool", "images", "middle"),
        node("Flatten", "middle", "vector"),
    ]
    outputs: dict[str, Any] = {"places": ("n", 3, 4, 2), "vector": ("n", 3)}
    file = save(tmp_path / "n.onnx", nodes, {}, ("n", 3, 16, 8), outputs)
    plain = Network(file)  # the output that is a vector
    assert (plain.preprocessing.output, plain.n_features) == ("vector", 3)
    sidecar = file.with_suffix(".json")
    sidecar.write_text(json.dumps({"output": "places"}))
    pooled = Network(file)
    assert np.allclose(pooled.transform(photos), plain.transform(photos), atol=1e-5)
    sidecar.write_text(json.dumps({"output": "places", "pool": "none"}))
    assert Network(file).n_features == 24
    sidecar.write_text(json.dumps({"output": "vectr"}))
    with pytest.raises(
        InputError, match=r"unknown output of n.onnx 'vectr'; did you mean 'vector'"
    ):
        _ = Network(file).n_features
    sidecar.write_text(json.dumps({"size": [32, 16]}))
    with pytest.raises(InputError, match=r"says size \[32, 16\], but n.onnx takes 16 x 8"):
        _ = Network(file).n_features


def test_preprocessing_in_the_file_itself_and_beside_it(tmp_path: Path, photos: Photos) -> None:
    inside = json.dumps({"channels": "BGR", "scale": 1})
    file = embedder(tmp_path / "n.onnx", metadata={"resight": inside, "author": "me"})
    way = Network(file).preprocessing
    assert (way.channels, way.scale, way.size, way.resize) == ("BGR", 1, (64, 32), "stretch")
    file.with_suffix(".json").write_text(json.dumps({"channels": "RGB"}))
    assert Network(file).preprocessing.channels == "RGB"  # the JSON is easier to correct
    broken = embedder(tmp_path / "broken.onnx", metadata={"resight": "["})
    with pytest.raises(InputError, match=r"'resight' of .* is not a JSON object"):
        _ = Network(broken).n_features


def test_images_are_blurred_before_they_shrink_as_pillow_does(tmp_path: Path) -> None:
    from PIL import Image

    photo = np.random.default_rng(0).integers(0, 256, (300, 130, 3), dtype=np.uint8)
    way = Network(embedder(tmp_path / "n.onnx", size=(64, 32))).preprocessing
    plain = way.model_copy(update={"scale": 1.0, "mean": (0, 0, 0), "std": (1, 1, 1)})
    for shape in ((300, 130), (40, 20)):
        image = photo[: shape[0], : shape[1]]
        pillow = np.asarray(Image.fromarray(image).resize((32, 64), Image.Resampling.BILINEAR))
        assert abs(plain(image).transpose(1, 2, 0) - pillow).max() <= 1


def test_bad_outputs_name_the_image_and_the_others_go_on(tmp_path: Path, photos: Photos) -> None:
    nodes = [
        node("GlobalAveragePool", "images", "middle"),
        node("Flatten", "middle", "flat"),
        node("Sub", "flat floor", "above"),
        node("Log", "above", "vector"),  # of a dark image: the logarithm of a negative number
    ]
    floor = {"floor": np.float32([-1.5])}
    file = save(tmp_path / "n.onnx", nodes, floor, ("n", 3, 8, 8), {"vector": ("n", 3)})
    dark = np.zeros((20, 10, 3), np.uint8)
    # The probe for the length is a dark image too: a vector that is not finite has a length.
    done = Network(file).extract([photos[0], dark, photos[1]], on_error="collect")
    assert done.kept.tolist() == [0, 2]
    assert [(one.row, one.reason) for one in done.failures] == [
        (1, "n gave values that are not finite")
    ]
    assert np.allclose(done.features[1], Network(file).transform([photos[1]])[0])


def test_networks_that_are_no_descriptors(tmp_path: Path, photos: Photos) -> None:
    file = tmp_path / "n.onnx"
    squeeze = [node("ReduceMean", "images", "y", axes=[0, 2, 3], keepdims=0)]
    save(file, squeeze, {}, ("n", 3, 8, 8), {"y": (3,)})
    with pytest.raises(InputError, match="needs a batch axis"):
        Network(file).transform(photos)
    with pytest.raises(InputError, match=r"no network .*absent.onnx"):
        Network(tmp_path / "absent.onnx").transform(photos)
    with pytest.raises(InputError, match=r"unknown descriptor 'osnet'. Valid: FILE.onnx, gog"):
        descriptor("osnet")
    # As many features as the image has bright places: a length that changes.
    nodes = [
        node("ReduceMean", "images", "mean", axes=[1, 2], keepdims=0),
        node("Greater", "mean zero", "bright"),
        node("Cast", "bright", "mask", to=1),
        node("ReduceMax", "mask", "any", axes=[0], keepdims=0),
        node("Cast", "any", "chosen", to=9),
        node("Compress", "mean chosen", "vector", axis=1),
    ]
    weights = {"zero": np.float32([0])}
    save(file, nodes, weights, ("n", 3, 8, 8), {"vector": ("n", "bright")})
    light = np.full((16, 16, 3), 255, np.uint8)
    half = light.copy()
    half[:, :8] = 0
    with pytest.raises(InputError, match="a vector of the same length"):
        Network(file).transform([light, half])


def test_images_that_influence_each_other_go_alone(tmp_path: Path, photos: Photos) -> None:
    """An export in training mode normalises over the batch, one with a fixed reshape fails."""
    nodes = [
        node("GlobalAveragePool", "images", "middle"),
        node("Flatten", "middle", "flat"),
        node("ReduceMean", "flat", "mean", axes=[0], keepdims=1),
        node("Sub", "flat mean", "vector"),
    ]
    file = save(tmp_path / "n.onnx", nodes, {}, ("n", 3, 8, 8), {"vector": ("n", 3)})
    assert Network(file).batch == 1
    shape = {"shape": np.int64([1, 192])}
    nodes = [node("Reshape", "images shape", "vector")]
    file = save(tmp_path / "m.onnx", nodes, shape, ("n", 3, 8, 8), {"vector": ("n", 192)})
    assert Network(file).batch == 1
    assert Network(file).transform(photos).shape == (11, 192)


def test_the_fingerprint_covers_contents_and_preprocessing(tmp_path: Path) -> None:
    file = embedder(tmp_path / "a.onnx")
    first = Network(file).fingerprint
    assert Network(shutil.copy(file, tmp_path / "b.onnx")).fingerprint == first
    sidecar = file.with_suffix(".json")
    sidecar.write_text(json.dumps({"licence": "MIT", "scale": 255, "size": [64, 32]}))
    assert Network(file).fingerprint == first  # it says what was assumed
    sidecar.write_text(json.dumps({"scale": 1}))
    assert Network(file).fingerprint != first
    sidecar.unlink()
    assert Network(file, mirror=True).fingerprint != first
    embedder(file, length=9)
    assert Network(file).fingerprint != first


def test_weights_in_a_second_file_count(tmp_path: Path) -> None:
    outside = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
    file = embedder(tmp_path / "n.onnx", **outside)
    assert network_files(file) == [file, tmp_path / "w.bin"]
    first = Network(file)
    _ = first.n_features
    weights = (tmp_path / "w.bin").read_bytes()
    (tmp_path / "w.bin").write_bytes(weights[::-1])
    assert Network(file).fingerprint != first.fingerprint
    with pytest.raises(InputError, match="other contents"):
        _ = first.path
    (tmp_path / "w.bin").unlink()
    with pytest.raises(InputError, match=r"keeps its weights in w.bin, which is missing"):
        _ = Network(file).fingerprint


def test_only_its_identity_is_pickled(tmp_path: Path, photos: Photos) -> None:
    network = Network(embedder(tmp_path / "n.onnx", length=4000))
    vectors = network.transform(photos)
    content = pickle.dumps(network)
    assert len(content) < 2000 < os.path.getsize(network.file)
    again = pickle.loads(content)
    assert np.array_equal(again.transform(photos), vectors)


def test_a_store_keeps_vectors_of_each_file_apart(tmp_path: Path, kit: Any) -> None:
    sightings = kit.write_images(tmp_path / "images", 12)
    file, store = embedder(tmp_path / "n.onnx"), FeatureStore(tmp_path / "store")
    first = store.ensure(sightings, str(file), executor=local(1))
    assert (first.computed, first.descriptors) == (12, ("n",))
    assert store.ensure(sightings, str(file), executor=local(1)).computed == 0
    embedder(file, length=6)
    both = store.ensure(sightings, f"whos-star+{file}", executor=local(1))
    assert (both.computed, both.blocks) == (24, (2960, 6))


@pytest.fixture
def model(tmp_path: Path, photos: Photos) -> Model:
    made = Model((Network(embedder(tmp_path / "n.onnx")), "whos-star"), KXQDA())
    made.fit(made.describe(photos[:8]), np.tile(np.arange(4), 2), np.repeat([0, 1], 4))
    return made


def test_a_model_names_its_network_and_refuses_another(
    tmp_path: Path, photos: Photos, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    described, file = model.describe(photos), tmp_path / "n.onnx"
    model.save(tmp_path / "model")
    loaded = resight.load(tmp_path / "model")
    assert isinstance(loaded, Model)
    assert loaded.fingerprint == model.fingerprint
    assert np.array_equal(loaded.describe(photos), described)
    file.with_suffix(".json").write_text(json.dumps({"scale": 1}))  # the model has its own
    assert np.array_equal(Model.load(tmp_path / "model").describe(photos), described)
    (tmp_path / "elsewhere").mkdir()
    file.rename(tmp_path / "elsewhere" / "n.onnx")
    monkeypatch.chdir(tmp_path / "elsewhere")  # found by its name in the folder of the user
    assert Model.load(tmp_path / "model").networks[0].path.is_file()
    embedder(tmp_path / "elsewhere" / "n.onnx", length=7)
    with pytest.raises(InputError, match="is not the network that was used before"):
        _ = Model.load(tmp_path / "model").networks[0].path
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"neither at .* nor in this folder; copy the file"):
        _ = Model.load(tmp_path / "model").networks[0].path


def test_a_model_may_carry_its_network_if_the_licence_is_known(
    tmp_path: Path, photos: Photos, model: Model
) -> None:
    described = model.describe(photos)
    model.networks[0].embed = True
    with pytest.raises(InputError, match="under which licence"):
        model.save(tmp_path / "model")
    (tmp_path / "n.json").write_text(json.dumps({"licence": "MIT"}))
    network = Network(tmp_path / "n.onnx", embed=True)
    carried = Model((network, "whos-star"), model.learner, normalize=model.normalize)
    carried.save(tmp_path / "model").save(tmp_path / "again")
    (tmp_path / "n.onnx").unlink()
    loaded = Model.load(tmp_path / "model")
    loaded.save(tmp_path / "again")  # as a gallery does
    assert np.array_equal(Model.load(tmp_path / "again").describe(photos), described)
    tensors = next((tmp_path / "model").glob("*.safetensors"))
    content = bytearray(tensors.read_bytes())
    content[-1] ^= 1
    tensors.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        Model.load(tmp_path / "model")


def test_an_explanation_is_an_occlusion_and_says_so(photos: Photos, model: Model) -> None:
    """Covering the topmost strip by hand gives what the first part says."""
    told = Explainer(model).explain(photos[0], photos[1]).to_dict()
    assert told["method"] == "occlusion"
    assert "This is an occlusion" in told["method_in_words"]
    assert [one["label"] for one in told["channels"]] == [
        "occlusion (n strips)",
        "occlusion (whos-star strips)",
    ]
    covered = [photo.copy() for photo in photos[:2]]
    for photo in covered:
        photo[: round(len(photo) / 8)] = (124, 116, 104)
    whole, top = model.describe(photos[:2]), model.describe(covered)
    mixed = np.concatenate([top[:, :8], whole[:, 8:]], axis=1)  # only the network sees it
    before, after = (model.distances(rows[:1], rows[1:])[0, 0] for rows in (whole, mixed))
    assert told["distance"] == pytest.approx(before)
    assert told["parts"][0]["contribution"] == pytest.approx(before - after, abs=1e-6)
    with pytest.raises(InputError, match="explained from images"):
        Explainer(model).explain_features(whole)
