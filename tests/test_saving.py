"""Model files: equal bits across processes, no damage unnoticed, no half-written model."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

import resight
from resight import KXQDA, XQDA
from resight._files import digest_of
from resight.errors import InputError, StoreError
from resight.kernels import Kernel
from resight.models import files
from resight.saving import (
    MANIFEST,
    SCHEMA,
    SavableMixin,
    _manifest_bytes,
    _manifest_digest,
    decode,
    encode,
)


def sightings():
    rng = np.random.default_rng(0)
    persons = np.tile(np.arange(12), 2)
    X = rng.normal(size=(12, 30))[persons] + 0.3 * rng.normal(size=(24, 30))
    return X, np.array([f"pérson {code}" for code in persons]), np.repeat(["yard", "door"], 12)


@pytest.fixture
def learner():
    return KXQDA().fit(*sightings())


@pytest.fixture
def folder(learner, tmp_path):
    learner.save(tmp_path / "model")
    return tmp_path / "model"


IN_ANOTHER_PROCESS = """
import sys, numpy as np, resight
X = np.load(sys.argv[2])
sys.stdout.buffer.write(resight.load(sys.argv[1]).distances(X[:12], X[12:]).tobytes())
"""


@pytest.mark.parametrize("made", [KXQDA(), KXQDA(kernel="linear", n_components=4), XQDA()])
def test_another_process_computes_the_same_bytes(made, tmp_path):
    X, persons, cameras = sightings()
    made.fit(X, persons, cameras).save(tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    arguments = [sys.executable, "-c", IN_ANOTHER_PROCESS, tmp_path / "model", tmp_path / "X.npy"]
    done = subprocess.run(arguments, capture_output=True, check=True, timeout=120)
    assert done.stdout == made.distances(X[:12], X[12:]).tobytes()


def test_everything_comes_back(learner, folder):
    loaded = resight.load(folder)
    assert type(loaded) is KXQDA
    assert loaded.get_params() == learner.get_params()
    assert vars(loaded).keys() == vars(learner).keys()
    np.testing.assert_array_equal(loaded.persons_, learner.persons_)
    assert loaded.kernel_.gamma_ == learner.kernel_.gamma_
    assert loaded.training_fingerprint_ == learner.training_fingerprint_


def test_the_manifest_tells_what_it_is(learner, folder):
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["schema"] == SCHEMA
    assert manifest["state"]["class"] == "KXQDA"
    assert manifest["versions"]["resight"] == resight.__version__
    state = manifest["state"]["state"]
    assert state["solver"] == "auto"
    assert state["training_fingerprint_"] == learner.training_fingerprint_


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1,
        float("inf"),
        "text",
        (1, (2.5, None)),
        [[1], []],
        {"a": {"b": 1.5}},
        np.arange(6).reshape(2, 3),
        np.array(["é", "b"]),
        np.array([1, "b"], dtype=object),
        np.float32([[1.5]]),
        np.array([True]),
    ],
)
def test_values_are_encoded_without_loss(value):
    def no_class(*_):
        raise AssertionError

    tensors: dict[str, np.ndarray] = {}
    text = json.dumps(encode(value, "", tensors))
    back = decode(json.loads(text), tensors, no_class)
    if isinstance(value, np.ndarray):
        assert back.dtype == value.dtype
        np.testing.assert_array_equal(back, value)
    else:
        assert back == value
        assert type(back) is type(value)


# Damage


def test_a_flipped_byte_anywhere_is_refused(folder):
    for file in folder.iterdir():
        data = file.read_bytes()
        step = max(1, len(data) // 100)
        for place in [*range(0, len(data), step), len(data) - 1]:
            for mask in (0x01, 0x20):
                flipped = bytearray(data)
                flipped[place] ^= mask
                file.write_bytes(flipped)
                with pytest.raises(StoreError):
                    resight.load(folder)
        file.write_bytes(data)
    resight.load(folder)


@pytest.mark.parametrize("keep", [0, 1, 100])
def test_a_cut_file_is_refused(folder, keep):
    for file in folder.iterdir():
        data = file.read_bytes()
        file.write_bytes(data[:keep])
        with pytest.raises(StoreError):
            resight.load(folder)
        file.write_bytes(data)


def test_missing_files_are_refused(folder):
    (tensors,) = folder.glob("*.safetensors")
    tensors.rename(folder / "elsewhere")
    with pytest.raises(StoreError, match="does not exist"):
        resight.load(folder)
    (folder / MANIFEST).unlink()
    with pytest.raises(StoreError, match=r"not a model folder.*manifest.json"):
        resight.load(folder)
    with pytest.raises(StoreError, match="not a model folder"):
        resight.load(folder / "nowhere")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"schema": "resight.model/3"}, r"'resight.model/3', not 'resight.model/2'.*newer.*update"),
        ({"name": "another program"}, "not a model that resight"),
        ([1, 2], "not a model that resight"),
    ],
)
def test_newer_and_foreign_manifests_are_refused(folder, manifest, message):
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match=message):
        resight.load(folder)


def test_loading_runs_no_code_of_the_file(folder):
    """Even a manifest with right digests can only name classes from the list."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["state"] = {"class": "Popen", "state": {}}
    manifest["digest"] = _manifest_digest(manifest)
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (folder / MANIFEST).write_text(text)
    with pytest.raises(StoreError, match="'Popen', unknown to this version of resight"):
        resight.load(folder)


def forge(folder, change):
    """Change a model's state or arrays and give it right digests."""
    manifest = json.loads((folder / MANIFEST).read_text())
    [file] = folder.glob("tensors-*")
    tensors = safetensors.numpy.load(file.read_bytes())
    change(manifest["state"]["state"], tensors)
    data = safetensors.numpy.save(tensors)
    file.unlink()
    manifest["tensors_digest"] = digest_of(data)
    manifest["digest"] = _manifest_digest(manifest)
    (folder / f"tensors-{digest_of(data)}.safetensors").write_bytes(data)
    (folder / MANIFEST).write_bytes(_manifest_bytes(manifest))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state, tensors: tensors[".coef_"].fill(np.nan), "coef_ contains NaN"),
        (lambda state, tensors: tensors.pop(".coef_"), r"\.coef_"),
        (lambda state, tensors: tensors.update({".coef_": tensors[".coef_"][:3]}), "matmul"),
        (lambda state, tensors: state.pop("X_fit_"), "X_fit_"),
        (lambda state, tensors: state.update(coef_="text"), "fit together"),
        (lambda state, tensors: state.update(n_features_in_=10**12), "n_features_in_"),
        (lambda state, tensors: state.update(reg={"float": "nan"}), "NaN"),
        (lambda state, tensors: state.update(reg={"float": 7}), "fit together"),
        (lambda state, tensors: state["persons_"].update(dtype="<U100000000"), "<U100000000"),
        (lambda state, tensors: state["persons_"].update(dtype="V100000000"), "V100000000"),
        (lambda state, tensors: state["persons_"].update(labels=7), "labels must be a list"),
    ],
)
def test_forged_models_are_refused_in_one_sentence(folder, change, words):
    forge(folder, change)
    with pytest.raises(StoreError, match=rf"model .*{words}.*fit again"):
        resight.load(folder)


def test_forging_nothing_gives_the_model(folder, learner):
    forge(folder, lambda state, tensors: None)
    np.testing.assert_array_equal(resight.load(folder).coef_, learner.coef_)


@pytest.mark.parametrize("data", [b"", b"junk" * 99, b"\xff" * 8 + b"{}", b"\2\0\0\0\0\0\0\0[["])
def test_forged_tensor_files_are_refused(folder, data):
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["tensors_digest"] = digest_of(data)
    manifest["digest"] = _manifest_digest(manifest)
    (folder / f"tensors-{digest_of(data)}.safetensors").write_bytes(data)
    (folder / MANIFEST).write_bytes(_manifest_bytes(manifest))
    with pytest.raises(StoreError, match="fit again"):
        resight.load(folder)


# Versions


class Watch(SavableMixin):
    """As an older resight had it."""

    state_version = 1
    learned = "rate_"

    def __init__(self, maker="nobody"):
        self.maker = maker


class NewWatch(SavableMixin):
    """The same class with an attribute renamed and a parameter more."""

    state_version = 2
    learned = "pace_"

    def __init__(self, maker="nobody", jewels=17):
        self.maker, self.jewels = maker, jewels

    @classmethod
    def migrate(cls, state, version):
        return {"maker": state["maker"], "pace_": state["rate_"]} if version < 2 else state


NewWatch.__name__ = "Watch"


@pytest.fixture
def watch(tmp_path, monkeypatch):
    monkeypatch.setitem(files.CLASSES, "Watch", __name__)
    old = Watch("Breguet")
    old.rate_ = np.arange(3.0)
    return old.save(tmp_path / "watch")


def test_an_attribute_that_was_renamed_is_migrated(watch, tmp_path, monkeypatch):
    assert resight.load(tmp_path / "watch").rate_.tolist() == [0.0, 1.0, 2.0]
    monkeypatch.setattr(sys.modules[__name__], "Watch", NewWatch)
    opened = resight.load(tmp_path / "watch")
    assert type(opened) is NewWatch
    assert (opened.maker, opened.jewels, opened.pace_.tolist()) == ("Breguet", 17, [0.0, 1.0, 2.0])
    assert not hasattr(opened, "rate_")
    opened.save(tmp_path / "watch")
    manifest = json.loads((tmp_path / "watch" / MANIFEST).read_text())
    assert (manifest["state"]["class"], manifest["state"]["version"]) == ("Watch", 2)
    assert resight.load(tmp_path / "watch").pace_.tolist() == [0.0, 1.0, 2.0]


def test_a_class_of_a_newer_version_is_refused(watch, tmp_path):
    NewWatch().save(tmp_path / "watch")
    with pytest.raises(StoreError, match=r"Watch of version 2.*up to 1\. Update resight, or fit"):
        resight.load(tmp_path / "watch")


def test_a_class_speaks_for_itself_not_for_those_made_of_it(tmp_path):
    class Own(KXQDA):
        """Adds what nobody declared."""

    with pytest.raises(InputError, match="cannot save Own"):
        Own().save(tmp_path / "model")


def test_names_of_columns_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, persons, cameras = sightings()
    frame = pandas.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    learner = KXQDA().fit(frame, persons, cameras).save(tmp_path / "model")
    loaded = resight.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.feature_names_in_, learner.feature_names_in_)
    np.testing.assert_allclose(loaded.transform(frame), learner.transform(frame))


# Saving


def test_saving_again_replaces_and_leaves_no_scraps(learner, folder):
    X, persons, cameras = sightings()
    other = XQDA().fit(X, persons, cameras).save(folder)
    assert len(list(folder.iterdir())) == 2
    np.testing.assert_array_equal(resight.load(folder).distances(X, X), other.distances(X, X))
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_folder_of_something_else_is_not_touched(learner, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"photo")
    with pytest.raises(InputError, match=r"not a model folder.*another path"):
        learner.save(tmp_path / "photos")
    assert os.listdir(tmp_path / "photos") == ["a.png"]


class Code(SavableMixin):
    """Does not say what of it is saved."""


@pytest.mark.parametrize("value", [lambda A, B: A @ B.T, Code(), {1: "number as key"}, {"a", "b"}])
def test_code_is_not_saved(value, tmp_path):
    kernel = Kernel("linear")
    kernel.coef0 = value
    learner = KXQDA()
    learner.kernel_ = kernel
    with pytest.raises(InputError, match=r"cannot save kernel_\.coef0"):
        learner.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


SAVING_TOO_MUCH = """
import resource, signal, sys, numpy as np, resight
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
learner = resight.load(sys.argv[1])
learner.persons_ = np.ones(100_000)
try:
    learner.save(sys.argv[2])
except OSError:
    print("disk full")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("target", ["model", "new"])
def test_a_full_disk_leaves_the_old_model(learner, folder, target):
    arguments = [sys.executable, "-c", SAVING_TOO_MUCH, folder, folder.parent / target]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "disk full\n"
    assert os.listdir(folder.parent) == ["model"]
    assert len(os.listdir(folder)) == 2
    X = sightings()[0]
    np.testing.assert_array_equal(resight.load(folder).distances(X, X), learner.distances(X, X))
