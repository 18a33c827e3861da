"""Landmark fits from stored features: by whatever workers, in whatever chunks, killed or not."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import numpy as np
import pytest

import resight
from resight import KXQDA
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError, ResightError
from resight.features.rows import FeatureRows
from resight.learners.normalizer import BlockNormalizer
from resight.models import landmark_fitting
from resight.models.landmark_fitting import LandmarkJob
from resight.models.model import Model
from resight.workers.executors import InProcess, local

BLOCKS = (14, 10)


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 4, size=(24, 3))
    who, where = np.indices(counts.shape)
    persons, cameras = np.repeat(who, counts.ravel()), np.repeat(where, counts.ravel())
    order = rng.permutation(len(persons))
    persons, cameras = persons[order], cameras[order]
    X = rng.normal(size=(24, 24))[persons] + 0.6 * rng.normal(size=(len(persons), 24))
    np.save(tmp_path / "table.npy", X.astype(np.float32))
    table = np.load(tmp_path / "table.npy", mmap_mode="r")
    names = np.array([f"person {code}" for code in persons])
    return FeatureRows([table], BLOCKS), names, np.array(["a", "b", "c"])[cameras]


def job_of(data, choose=False, **params):
    learner = KXQDA(**{"landmarks": 30, "reg": 1e-3, **params})
    model = Model((), learner)
    model.normalizer = BlockNormalizer(BLOCKS)
    return LandmarkJob(*data, model, "features", choose=choose)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(landmark_fitting, "CHUNK", 16)


def distances(job, data):
    rows = data[0].read(slice(0, 40))
    return job.model.distances(rows[:20], rows[20:])


def expected_distances(data, **params):
    """The same by a fit in memory."""
    rows = BlockNormalizer(BLOCKS).fit_transform(data[0].read())
    learner = KXQDA(**{"landmarks": 30, "reg": 1e-3, **params}).fit(rows, data[1], data[2])
    return learner.distances(rows[:20], rows[20:40])


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("jobs", [1, 2])
def test_it_equals_a_fit_in_memory(data, tmp_path, jobs):
    job = job_of(data)
    with local(jobs) as workers:
        assert job.fit(tmp_path / "store", workers) is None
    expected = expected_distances(data)
    assert np.abs(distances(job, data) - expected).max() < 1e-5 * expected.max()  # float32 rows
    assert list((tmp_path / "store").iterdir()) == []
    job.model.save(tmp_path / "model")
    again = resight.load(tmp_path / "model")
    rows = data[0].read(slice(0, 40))
    np.testing.assert_array_equal(again.distances(rows[:20], rows[20:]), distances(job, data))


@pytest.mark.usefixtures("small_chunks")
def test_the_regulariser_is_chosen_and_used(data, tmp_path):
    job = job_of(data, choose=True)
    decision = job.fit(tmp_path)
    chosen = {name: decision.chosen[name] for name in ("reg", "reg_form")}
    assert {key: job.learner.get_params()[key] for key in chosen} == chosen
    assert len(decision.candidates) == 6
    expected = expected_distances(data, **chosen)
    assert np.abs(distances(job, data) - expected).max() < 1e-5 * expected.max()


@pytest.mark.usefixtures("small_chunks")
def test_a_killed_fit_goes_on_with_its_finished_chunks(data, tmp_path):
    whole = job_of(data)
    whole.fit(tmp_path / "whole")
    done = []

    class Mortal(InProcess):
        def submit(self, function, *arguments):
            if len(done) == 3:
                raise KeyboardInterrupt
            done.append(arguments[1])
            return super().submit(function, *arguments)

    with pytest.raises(KeyboardInterrupt):
        job_of(data).fit(tmp_path / "store", Mortal())
    folder = next((tmp_path / "store").iterdir())
    kept = sorted(path.name for path in folder.glob("*.npz"))
    assert kept == sorted(done)
    seen = []

    class Watched(InProcess):
        def submit(self, function, *arguments):
            seen.append(arguments[1])
            return super().submit(function, *arguments)

    job = job_of(data)
    job.fit(tmp_path / "store", Watched())
    assert not set(seen) & set(kept)
    np.testing.assert_array_equal(distances(job, data), distances(whole, data))


@pytest.mark.usefixtures("small_chunks")
def test_a_chunk_that_always_fails_stops_the_fit_and_keeps_the_others(data, tmp_path):
    class Broken(InProcess):
        def submit(self, function, *arguments):
            if arguments[1].startswith("0-000001"):
                return super().submit(int, "no number")
            return super().submit(function, *arguments)

    with pytest.raises(ResightError, match=r"16 training rows .* 3 attempts.*same command resumes"):
        job_of(data).fit(tmp_path / "store", Broken())
    assert list((tmp_path / "store").iterdir())


def test_other_labels_parameters_or_features_are_other_jobs(data):
    source, persons, cameras = data
    first = job_of(data).digest
    assert first == job_of(data).digest
    assert first != job_of(data, seed=1).digest
    assert first != job_of(data, choose=True).digest
    assert first != job_of((source, persons[::-1], cameras)).digest
    assert first != job_of((source.select(np.arange(60)), persons[:60], cameras[:60])).digest


def test_what_is_refused(data, tmp_path):
    source, persons, _ = data
    with pytest.raises(InputError, match="one camera"):
        job_of((source, persons, np.full(len(persons), "a")))
    with pytest.raises(InputError, match="only"):
        job_of(data, landmarks=10**6).fit(tmp_path)


def test_workers_must_share_the_store(data, tmp_path):
    """It is refused before anything is read or written."""

    class Sent(InProcess):
        send_files = True

    class Elsewhere(InProcess):
        def check_shared(self, folder, file):
            raise ResightError(f"cannot write to {folder}")

    job = job_of(data)
    with pytest.raises(InputError, match=r"send_files=True.*store folder that all workers can wri"):
        job.fit(tmp_path / "store", Sent())
    with pytest.raises(ResightError, match=r"cannot write to .*store$"):
        job.fit(tmp_path / "store", Elsewhere())
    assert list((tmp_path / "store").iterdir()) == []
    assert not hasattr(job.learner, "landmarks_")


@pytest.fixture
def scheduler():
    """Give the address of a Dask scheduler with one worker, in processes of their own."""
    pytest.importorskip("distributed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{words[0]}", *words[1:]],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for words in (
            ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
            ["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"],
        )
    ]
    yield address
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.cluster
@pytest.mark.usefixtures("small_chunks")
def test_workers_of_a_cluster_sum_up_chunks(data, tmp_path, scheduler):
    alone, spread = job_of(data), job_of(data)
    alone.fit(tmp_path / "alone")
    with resight.cluster(scheduler, timeout=60) as workers:
        spread.fit(tmp_path / "spread", workers)
    np.testing.assert_allclose(distances(spread, data), distances(alone, data), rtol=1e-9)


def test_the_verb_fits_chooses_and_saves(tmp_path, capsys):
    draw_cameras(tmp_path / "images", 12, 2, 2)
    words = ["fit", str(tmp_path / "images"), "--out", str(tmp_path / "model"), "--json"]
    words += ["--store", str(tmp_path / "store"), "--jobs", "1", "--descriptor", "whos-star"]
    assert main([*words, "--landmarks", "24"]) == 0
    told = json.loads(capsys.readouterr().out)
    learner = resight.load(tmp_path / "model").learner
    assert (learner.solver_, learner.precision) == ("landmarks", "float32")
    assert told["chosen"]["reg"] == learner.reg
    assert len(told["candidates"]) == 6
    given = ["--param", "reg=1e-3", "--param", "precision=float64"]
    assert main([*words, "--landmarks", "24", *given]) == 0
    assert "chosen" not in json.loads(capsys.readouterr().out)
    assert resight.load(tmp_path / "model").learner.precision == "float64"
    assert main([*words, "--landmarks", "1000"]) == 1
    assert "only 48 training sightings" in capsys.readouterr().err
    assert main([*words, "--landmarks", "24", "--learner", "xqda"]) == 1
    assert "landmarks" in capsys.readouterr().err
