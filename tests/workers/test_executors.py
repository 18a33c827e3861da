"""Executors: everything is done once, failures are found and reported, whoever dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import resight
from resight.errors import InputError, StoreError
from resight.features.describing import CHUNK
from resight.features.store import FeatureStore
from resight.workers.dask_cluster import ClusterError, refuse_other_version
from resight.workers.executors import RETRIES, Executor, Outcome, local, run


def as_arguments(item: int) -> tuple[int]:
    return (item,)


def outcomes(
    executor: Executor, function: Callable[..., Any], count: int, **options: Any
) -> dict[int, Outcome[int, Any]]:
    found = list(run(executor, function, range(count), as_arguments, **options))
    assert len(found) == len({outcome.item for outcome in found})
    return {outcome.item: outcome for outcome in found}


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_item_is_done(jobs: int) -> None:
    with local(jobs) as executor:
        found = outcomes(executor, abs, 20)
    assert [found[item].value for item in range(20)] == list(range(20))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_item_is_tried_again_then_reported(jobs: int, tmp_path: Path) -> None:
    def work(item: int, log: Path = tmp_path) -> int:
        if item == 3:
            with (log / "tries").open("a") as stream:
                stream.write("x")
            raise RuntimeError("always")
        if item == 5 and not (log / "once").exists():
            (log / "once").touch()
            raise RuntimeError("passes")
        return item

    with local(jobs) as executor:
        found = outcomes(executor, work, 10)
    assert str(found[3].error) == "always"
    assert found[3].attempts == 1 + RETRIES == len((tmp_path / "tries").read_text())
    assert found[5].value == 5
    assert [item for item in range(10) if found[item].error is None] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_the_item_that_kills_its_worker_is_found() -> None:
    def work(item: int) -> int:
        if item == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with local(2) as executor:
        found = outcomes(executor, work, 12, retries=1)
    assert [item for item, outcome in found.items() if outcome.error is not None] == [4]
    assert sorted(outcome.item for outcome in found.values()) == list(range(12))


def test_a_worker_killed_once_costs_nobody_anything(tmp_path: Path) -> None:
    def work(item: int, mark: Path = tmp_path / "killed") -> int:
        if item == 4 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with local(2) as executor:
        found = outcomes(executor, work, 12)
    assert all(outcome.value == item for item, outcome in found.items())


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_nobody_can_retry_stop_all(jobs: int) -> None:
    def work(item: int) -> int:
        raise StoreError("full")

    with local(jobs) as executor, pytest.raises(StoreError, match="full"):
        outcomes(executor, work, 5)


def test_tasks_that_were_taken_back_are_sent_again() -> None:
    class Forgetful(Executor):
        """Loses the first task, as a scheduler that was restarted does."""

        slots = 1
        lost: Future[Any] | None = None

        def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
            future: Future[Any] = Future()
            if self.lost is None:
                self.lost = future
            else:
                future.set_result(function(*arguments))
            return future

        def watch(self) -> None:
            assert self.lost is not None
            self.lost.cancel()  # and nobody calls set_running_or_notify_cancel

    found = outcomes(Forgetful(), abs, 3)
    assert {item: (one.value, one.attempts) for item, one in found.items()} == {
        item: (item, 1) for item in range(3)
    }


def test_items_may_turn_out_needless() -> None:
    found = run(local(1), abs, range(4), lambda item: None if item % 2 else (item,))
    assert {outcome.item: outcome.value for outcome in found} == {0: 0, 1: None, 2: 2, 3: None}


def test_workers_use_one_blas_thread() -> None:
    def threads(item: int) -> list[str]:
        return [os.environ[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")]

    with local(2) as executor:
        assert outcomes(executor, threads, 2)[0].value == ["1", "1"]


def test_jobs_must_be_positive() -> None:
    with pytest.raises(InputError, match="jobs=0"):
        local(0)


@pytest.mark.parametrize("address", ["", "host", "host:8786", "tcp://host", "tcp://:8786"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(InputError, match=r"expected tcp://HOST:PORT"):
        resight.cluster(address)


def test_another_version_is_refused_naming_both() -> None:
    refuse_other_version("1.0", "tcp://w", "1.0")
    with pytest.raises(ClusterError, match=r"tcp://w has resight 0.9, this is resight 1.0"):
        refuse_other_version("0.9", "tcp://w", "1.0")
    with pytest.raises(ClusterError, match="has no resight"):
        refuse_other_version(None, "tcp://w", "1.0")


def described(log: Path) -> int:
    return len(log.read_text().split()) if log.exists() else 0


@pytest.mark.cluster
def test_nobody_listens(dask: Any) -> None:
    began = time.monotonic()
    with pytest.raises(ClusterError, match=rf"no Dask scheduler answers at {dask.address}"):
        resight.cluster(dask.address, timeout=1)
    assert time.monotonic() - began < 10


@pytest.mark.cluster
def test_a_scheduler_without_workers(dask: Any) -> None:
    dask.scheduler()
    with pytest.raises(ClusterError, match=r"has had no worker for 5 s.*dask worker tcp://"):
        resight.cluster(dask.address, timeout=5)


@pytest.mark.cluster
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates")
def test_a_cluster_with_certificates(
    dask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work is done over tls://; whoever has no certificate of the same authority is not let in."""
    import dask as library

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "stranger"):
        openssl("req", "-x509", *curve, "-days", "2", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.pem")  # fmt: skip
    openssl("req", *curve, "-subj", "/CN=ours", "-keyout", "our.key", "-out", "our.csr")
    openssl("x509", "-req", "-in", "our.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2",
            "-out", "our.pem")  # fmt: skip

    def settings(name: str) -> dict[str, str]:
        files = {"cert": str(tmp_path / f"{name}.pem"), "key": str(tmp_path / f"{name}.key")}
        who = ("scheduler", "worker", "client")
        pairs = {f"{one}.{kind}": file for one in who for kind, file in files.items()}
        return {"ca-file": str(tmp_path / "ca.pem"), **pairs}

    for key, value in settings("our").items():
        name = key.upper().replace(".", "__").replace("-", "_")
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{name}", value)
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION", "True")
    dask.address = dask.address.replace("tcp", "tls")
    dask.scheduler("--protocol", "tls")
    dask.worker()

    def configured(name: str) -> Any:
        prefix = "distributed.comm.tls"
        return library.config.set({f"{prefix}.{k}": v for k, v in settings(name).items()})

    with configured("our"), resight.cluster(dask.address, timeout=60) as executor:
        assert outcomes(executor, abs, 3)[2].value == 2
    with configured("stranger"), pytest.raises(ClusterError, match="no Dask scheduler answers"):
        resight.cluster(dask.address, timeout=2)
    with pytest.raises(ClusterError, match="no Dask scheduler answers"):
        resight.cluster(dask.address.replace("tls", "tcp"), timeout=2)


def test_an_open_scheduler_is_called_one(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ClusterError):
        resight.cluster("tcp://192.0.2.1:1", timeout=0.1)
    assert "anyone who can reach it can run code" in caplog.text


@pytest.mark.cluster
def test_workers_with_another_resight_are_refused(dask: Any, tmp_path: Path) -> None:
    package = Path(resight.__file__).parent
    shutil.copytree(package, tmp_path / "resight", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "resight" / "_version.py").write_text('__version__ = "0.0.1"\n')
    dask.scheduler()
    dask.worker(PYTHONPATH=str(tmp_path))
    with pytest.raises(
        ClusterError, match=rf"resight 0.0.1, this is resight {resight.__version__}"
    ):
        resight.cluster(dask.address, timeout=60)


@pytest.mark.cluster
def test_worker_killed_and_scheduler_restarted(kit: Any, dask: Any, tmp_path: Path) -> None:
    sightings = kit.write_images(tmp_path / "images", 10 * CHUNK)
    FeatureStore(tmp_path / "serial").ensure(sightings, kit.tiny(), executor=local(1))
    scheduler = dask.scheduler()
    first, _ = dask.worker(), dask.worker()
    log = tmp_path / "log"

    def disturb() -> None:
        dask.wait_until(lambda: described(log) > 2 * CHUNK)
        first.kill()
        dask.wait_until(lambda: described(log) > 5 * CHUNK)
        scheduler.kill()
        scheduler.wait()
        dask.scheduler()
        dask.worker()

    with resight.cluster(dask.address, timeout=60) as executor:
        trouble = threading.Thread(target=disturb)
        trouble.start()
        features = FeatureStore(tmp_path / "cluster").ensure(
            sightings, kit.tiny(log, 0.004), executor=executor
        )
        trouble.join()
    assert features.failures == ()
    assert kit.tree(tmp_path / "cluster") == kit.tree(tmp_path / "serial")
    assert described(log) <= (10 + 1 + 2) * CHUNK  # one in work at the first kill, two at the other


@pytest.mark.cluster
def test_files_sent_by_bytes_give_the_same_store(kit: Any, dask: Any, tmp_path: Path) -> None:
    sightings = kit.write_images(tmp_path / "images", 50)
    FeatureStore(tmp_path / "serial").ensure(sightings, kit.tiny(), executor=local(1))
    dask.scheduler()
    dask.worker()
    with resight.cluster(dask.address, send_files=True, timeout=60) as executor:
        FeatureStore(tmp_path / "sent").ensure(sightings, kit.tiny(), executor=executor)
    assert kit.tree(tmp_path / "sent") == kit.tree(tmp_path / "serial")


@pytest.mark.cluster
def test_a_chunk_that_kills_workers_is_reported_and_the_rest_completes(
    kit: Any, dask: Any, tmp_path: Path
) -> None:
    sightings = kit.write_images(tmp_path / "images", 4 * CHUNK)
    Image.fromarray(np.zeros((16, 8, 3), np.uint8)).save(sightings.files()[CHUNK])  # the killer
    descriptor = kit.tiny()
    describe = descriptor.describe

    def deadly(image: np.ndarray) -> np.ndarray:
        if not image.any():
            os.kill(os.getpid(), signal.SIGKILL)
        return describe(image)

    descriptor.describe = deadly
    dask.scheduler()
    dask.worker("--nanny")
    with resight.cluster(dask.address, timeout=60) as executor:
        features = FeatureStore(tmp_path / "store").ensure(
            sightings, descriptor, executor=executor, on_error="collect"
        )
    assert [failure.row for failure in features.failures] == list(range(CHUNK, 2 * CHUNK))
    assert f"chunk of {CHUNK} images failed {1 + RETRIES} times" in features.failures[0].reason
    assert features.computed == 3 * CHUNK


@pytest.mark.cluster
@pytest.mark.parametrize("engine", ["local", "dask"])
def test_a_chunk_without_memory_is_reported_and_the_rest_completes(
    kit: Any, dask: Any, tmp_path: Path, engine: str
) -> None:
    sightings = kit.write_images(tmp_path / "images", 4 * CHUNK)
    Image.fromarray(np.zeros((16, 8, 3), np.uint8)).save(sightings.files()[CHUNK])
    descriptor = kit.tiny()
    describe = descriptor.describe
    descriptor.describe = lambda image: describe(image if image.any() else np.empty(1 << 57))
    if engine == "dask":
        dask.scheduler()
        dask.worker()
    with local(2) if engine == "local" else resight.cluster(dask.address, timeout=60) as executor:
        features = FeatureStore(tmp_path / "store").ensure(
            sightings, descriptor, executor=executor, on_error="collect"
        )
    assert [failure.row for failure in features.failures] == list(range(CHUNK, 2 * CHUNK))
    reason = features.failures[0].reason
    assert f"chunk of {CHUNK} images failed {1 + RETRIES} times: Unable to allocate" in reason
    assert features.computed == 3 * CHUNK


@pytest.mark.cluster
def test_workers_that_dask_pauses_end_the_wait(kit: Any, dask: Any, tmp_path: Path) -> None:
    sightings = kit.write_images(tmp_path / "images", 2 * CHUNK)
    dask.scheduler()
    dask.worker(DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE="0.0001")  # of this machine's memory
    with (
        resight.cluster(dask.address, timeout=60, patience=1) as executor,
        pytest.raises(ClusterError, match=r"paused for 1 s.*limit of memory.*Finished work"),
    ):
        FeatureStore(tmp_path / "store").ensure(sightings, kit.tiny(), executor=executor)


@pytest.mark.cluster
def test_a_folder_workers_do_not_share(dask: Any, tmp_path: Path) -> None:
    dask.scheduler()
    dask.worker()
    with resight.cluster(dask.address, timeout=60) as executor:
        executor.check_shared(tmp_path, Path(__file__))
        with pytest.raises(
            ClusterError, match=r"cannot write to .*elsewhere.*extract --send-files"
        ):
            executor.check_shared(tmp_path / "elsewhere", Path(__file__))
        with pytest.raises(ClusterError, match=r"cannot read .*gone.png.*extract --send-files"):
            executor.check_shared(tmp_path, tmp_path / "gone.png")
        with pytest.raises(ClusterError, match=r"cannot write to .*under the same path$"):
            executor.check_shared(tmp_path / "elsewhere", None)  # there is nothing to send


@pytest.mark.cluster
def test_all_workers_killed_and_replaced(kit: Any, dask: Any, tmp_path: Path) -> None:
    sightings = kit.write_images(tmp_path / "images", 6 * CHUNK)
    dask.scheduler()
    workers = [dask.worker(), dask.worker()]
    log = tmp_path / "log"

    def disturb() -> None:
        dask.wait_until(lambda: described(log) > 2 * CHUNK)
        for worker in workers:
            worker.kill()
        dask.worker()

    with resight.cluster(dask.address, timeout=60) as executor:
        trouble = threading.Thread(target=disturb)
        trouble.start()
        features = FeatureStore(tmp_path / "store").ensure(
            sightings, kit.tiny(log, 0.004), executor=executor
        )
        trouble.join()
    assert features.computed == 6 * CHUNK
    assert described(log) <= (6 + 2) * CHUNK


@pytest.mark.cluster
def test_a_result_lost_on_its_way_is_not_waited_for(dask: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    class KillsWhoSendsIt:
        def __reduce__(self) -> str:
            os._exit(1)

    def finish_once() -> object:  # the first worker dies with the result, the second at work
        if mark.exists():
            os._exit(1)
        mark.touch()
        return KillsWhoSendsIt()

    dask.scheduler()
    dask.worker()
    dask.worker()
    with resight.cluster(dask.address, timeout=60) as executor:
        dask.wait_until(lambda: executor.slots == 2)
        error = executor.submit(finish_once).exception(timeout=60)
        assert error is not None
        assert executor.worker_died(error)


@pytest.mark.cluster
def test_workers_that_never_come_back_end_the_wait(kit: Any, dask: Any, tmp_path: Path) -> None:
    sightings = kit.write_images(tmp_path / "images", 6 * CHUNK)
    dask.scheduler()
    worker = dask.worker()
    log = tmp_path / "log"

    def disturb() -> None:
        dask.wait_until(lambda: described(log) > CHUNK)
        worker.kill()

    with resight.cluster(dask.address, timeout=60, patience=1) as executor:
        trouble = threading.Thread(target=disturb)
        trouble.start()
        with pytest.raises(ClusterError, match="has had no worker for 1 s"):
            FeatureStore(tmp_path / "store").ensure(
                sightings, kit.tiny(log, 0.004), executor=executor
            )
        trouble.join()
