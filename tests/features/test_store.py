"""The feature store: right rows, nothing twice, nothing lost, whoever is killed or interferes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from resight.datasets.sightings import Sightings
from resight.descriptors import descriptor
from resight.errors import InputError, StoreError
from resight.features._tables import read_chunk
from resight.features.describing import CHUNK
from resight.features.store import FeatureStore
from resight.workers.executors import local

# One extraction in a process of its own; arguments: conftest, images, store, log, jobs, seconds.
SCRIPT = """
import runpy, sys
from pathlib import Path
from resight.features._tables import read_chunk
from resight.workers.executors import local
from resight.features.store import FeatureStore
kit = runpy.run_path(sys.argv[1])
images, store, log = map(Path, sys.argv[2:5])
files = sorted(path.name for path in images.iterdir())
n = len(files)
sightings = kit["Sightings"](files, [""] * n, ["a"] * n, root=images, name="noise")
with local(int(sys.argv[5])) as executor:
    features = FeatureStore(store).ensure(
        sightings, kit["tiny"](log, float(sys.argv[6])), executor=executor)
print(features.computed)
"""


def described(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def expected(sightings: Sightings, tiny: Any) -> np.ndarray:
    rows = []
    for path in sightings.files():
        with Image.open(path) as image:
            rows.append(tiny.describe(np.asarray(image.convert("RGB"))))
    return np.array(rows, np.float32)


def start(kit: Any, folder: Path, store: str, *, jobs: int = 1, seconds: float = 0.0) -> Any:
    command = [sys.executable, "-c", SCRIPT, kit.file, folder / "images", folder / store]
    command += [folder / f"{store}.log", str(jobs), str(seconds)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_rows_are_the_descriptors_in_row_order(
    kit: Any, tmp_path: Path, sightings: Sightings
) -> None:
    features = FeatureStore(tmp_path / "store").ensure(sightings, kit.tiny(), executor=local(1))
    assert isinstance(features.features, np.memmap)
    assert features.features.dtype == np.float32
    np.testing.assert_array_equal(features.features, expected(sightings, kit.tiny()))
    assert features.computed == 100
    assert features.failures == ()
    assert features.blocks == (24,)


def test_names_joined_by_plus_are_stored_apart(tmp_path: Path, sightings: Sightings) -> None:
    store, few = FeatureStore(tmp_path / "store"), sightings.select(np.arange(3))
    alone = store.ensure(few, "whos-star", mirror=True)
    both = store.ensure(few, "whos-star+whos-dagger", mirror=True)
    assert (alone.computed, both.computed) == (3, 3)
    assert both.descriptors == ("whos-star", "whos-dagger")
    assert both.blocks == (2960, 5138)
    direct = [descriptor(name, mirror=True).transform(few.files()) for name in both.descriptors]
    np.testing.assert_array_equal(both.features, np.concatenate(direct, axis=1))
    assert store.ensure(few, "whos-star").computed == 3  # not mirrored: other vectors


def test_processes_give_the_same_bytes_as_one(
    kit: Any, tmp_path: Path, sightings: Sightings
) -> None:
    for store, jobs in (("one", 1), ("two", 2)):
        with local(jobs) as executor:
            FeatureStore(tmp_path / store).ensure(sightings, kit.tiny(), executor=executor)
    assert kit.tree(tmp_path / "one") == kit.tree(tmp_path / "two")


def test_a_second_call_computes_nothing(kit: Any, tmp_path: Path, sightings: Sightings) -> None:
    store, log = FeatureStore(tmp_path / "store"), tmp_path / "log"
    first = store.ensure(sightings, kit.tiny(log), executor=local(1))
    again = store.ensure(sightings, kit.tiny(log), executor=local(1))
    assert again.computed == 0
    assert again.fingerprint == first.fingerprint
    assert len(described(log)) == 100


def test_selections_reuse_rows(kit: Any, tmp_path: Path, sightings: Sightings) -> None:
    store = FeatureStore(tmp_path / "store")
    whole = store.ensure(sightings, kit.tiny(), executor=local(1)).features
    rows = np.random.default_rng(0).permutation(100)[:40]
    some = store.ensure(sightings.select(rows), kit.tiny(), executor=local(1))
    assert some.computed == 0
    np.testing.assert_array_equal(some.features, whole[rows])
    tables = len(list((tmp_path / "store").rglob("*.npy")))
    part = store.ensure(sightings.select(np.arange(20, 50)), kit.tiny(), executor=local(1))
    np.testing.assert_array_equal(part.features, whole[20:50])
    assert len(list((tmp_path / "store").rglob("*.npy"))) == tables  # a slice needs no new table


def test_more_images_later_compute_only_those(
    kit: Any, tmp_path: Path, sightings: Sightings
) -> None:
    store = FeatureStore(tmp_path / "store")
    store.ensure(sightings.select(np.arange(50)), kit.tiny(), executor=local(1))
    features = store.ensure(sightings, kit.tiny(), executor=local(1))
    assert features.computed == 50
    np.testing.assert_array_equal(features.features, expected(sightings, kit.tiny()))


def test_equal_images_are_described_once(kit: Any, tmp_path: Path, sightings: Sightings) -> None:
    rows = np.repeat(np.arange(10), 3)
    features = FeatureStore(tmp_path / "s").ensure(
        sightings.select(rows), kit.tiny(), executor=local(1)
    )
    assert features.computed == 10
    np.testing.assert_array_equal(features.features, expected(sightings, kit.tiny())[rows])


def test_boxes_are_cut_before_describing(kit: Any, tmp_path: Path, sightings: Sightings) -> None:
    boxes = np.tile([1, 2, 6, 12], (100, 1))
    boxes[1] = [-3, -3, 30, 40]  # reaches over the border: what is inside counts
    boxes[2] = [50, 0, 5, 5]
    features = FeatureStore(tmp_path / "store").ensure(
        replace(sightings, boxes=boxes), kit.tiny(), executor=local(1), on_error="collect"
    )
    with Image.open(sightings.files()[0]) as image:
        cut = np.asarray(image)[2:14, 1:7]
    np.testing.assert_array_equal(features.features[0], kit.tiny().describe(cut).astype("f4"))
    np.testing.assert_array_equal(features.features[1], expected(sightings, kit.tiny())[1])
    assert [failure.row for failure in features.failures] == [2]
    assert "outside the image of 8 x 16 pixels" in features.failures[0].reason


def test_a_changed_image_is_noticed(kit: Any, tmp_path: Path, sightings: Sightings) -> None:
    store = FeatureStore(tmp_path / "store")
    store.ensure(sightings, kit.tiny(), executor=local(1))
    file = sightings.files()[7]
    before = file.stat()
    Image.fromarray(np.zeros((16, 8, 3), np.uint8)).save(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # dates prove nothing
    features = store.ensure(sightings, kit.tiny(), executor=local(1))
    assert features.changed == ("0007.png",)
    assert features.computed == 1
    np.testing.assert_array_equal(features.features, expected(sightings, kit.tiny()))
    assert store.ensure(sightings, kit.tiny(), executor=local(1)).changed == ()


def test_another_descriptor_version_is_computed_anew(
    kit: Any, tmp_path: Path, sightings: Sightings
) -> None:
    store = FeatureStore(tmp_path / "store")
    store.ensure(sightings, kit.tiny(version="1"), executor=local(1))
    assert store.ensure(sightings, kit.tiny(version="2"), executor=local(1)).computed == 100


def test_unreadable_files_are_listed_and_the_rest_goes_on(
    kit: Any, tmp_path: Path, sightings: Sightings
) -> None:
    files = sightings.files()
    files[3].unlink()
    files[40].write_bytes(b"no image")
    store = FeatureStore(tmp_path / "store")
    with pytest.raises(InputError, match=r"1 images cannot be used.*\n  0003.png: No such file"):
        store.ensure(sightings, kit.tiny(), executor=local(1))
    features = store.ensure(sightings, kit.tiny(), executor=local(1), on_error="collect")
    assert [failure.path for failure in features.failures] == ["0003.png", "0040.png"]
    assert features.computed == 98
    assert np.isnan(features.features[[3, 40]]).all()
    good = np.delete(np.arange(100), [3, 40])
    np.testing.assert_array_equal(features.usable.nonzero()[0], good)
    np.testing.assert_array_equal(
        features.features[good], expected(sightings.select(good), kit.tiny())
    )
    again = store.ensure(sightings, kit.tiny(), executor=local(1), on_error="collect")
    assert (again.computed, len(again.failures)) == (0, 2)


def test_raising_still_keeps_what_was_finished(
    kit: Any, tmp_path: Path, sightings: Sightings
) -> None:
    sightings.files()[40].write_bytes(b"no image")
    store, log = FeatureStore(tmp_path / "store"), tmp_path / "log"
    with pytest.raises(InputError, match=r"0040\.png"):
        store.ensure(sightings, kit.tiny(log), executor=local(1))
    Image.fromarray(np.zeros((16, 8, 3), np.uint8)).save(sightings.files()[40])
    assert store.ensure(sightings, kit.tiny(log), executor=local(1)).computed == 1


def test_killed_any_time_it_does_only_what_is_missing(kit: Any, tmp_path: Path) -> None:
    kit.write_images(tmp_path / "images", 500)
    whole = start(kit, tmp_path, "uninterrupted")
    assert whole.communicate()[0].strip() == "500"
    rng = random.Random(4)
    log = tmp_path / "killed.log"
    kills = 0
    for aim in (140, 280, 420):
        run = start(kit, tmp_path, "killed", jobs=2, seconds=0.004)
        while len(described(log)) < aim and run.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.1))
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        kills += run.returncode == -signal.SIGKILL
    assert kills == 3
    end = start(kit, tmp_path, "killed", jobs=2)
    assert int(end.communicate()[0]) < 500
    assert kit.tree(tmp_path / "killed") == kit.tree(tmp_path / "uninterrupted")
    # Twice at most: the two chunks that were in work at each of the three kills.
    assert len(described(log)) <= 500 + 3 * 2 * CHUNK


def test_two_processes_may_fill_one_store_at_once(kit: Any, tmp_path: Path) -> None:
    sightings = kit.write_images(tmp_path / "images", 300)
    runs = [start(kit, tmp_path, "shared", seconds=0.004) for _ in range(2)]
    for run in runs:
        errors = run.communicate()[1]
        assert run.returncode == 0, errors
    alone = start(kit, tmp_path, "alone")
    alone.communicate()
    assert kit.tree(tmp_path / "shared") == kit.tree(tmp_path / "alone")
    done = FeatureStore(tmp_path / "shared").ensure(sightings, kit.tiny(), executor=local(1))
    assert done.computed == 0


def test_interrupt_keeps_finished_chunks(kit: Any, tmp_path: Path) -> None:
    kit.write_images(tmp_path / "images", 300)
    log = tmp_path / "store.log"
    run = start(kit, tmp_path, "store", jobs=2, seconds=0.01)
    while len(described(log)) < 200:
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGINT)  # as Ctrl-C does: the whole group gets it
    _, errors = run.communicate(timeout=20)
    assert run.returncode != 0
    assert errors.strip().endswith("KeyboardInterrupt")
    assert "Process" not in errors  # no noise from the workers
    end = start(kit, tmp_path, "store", jobs=2)
    assert int(end.communicate()[0]) <= 300 - CHUNK


@pytest.mark.parametrize("limit", [5000, 9000])
def test_full_disk_is_reported_and_loses_nothing(kit: Any, tmp_path: Path, limit: int) -> None:
    # Rows of 96 bytes and keys: the chunk of 64 takes 8,448 bytes, that of 36 takes 4,864, the
    # table of both 9,728. So the first limit stops a chunk, the second the table, which takes
    # chunks as they come: once the last rows are there, with or without the first 64.
    kit.write_images(tmp_path / "images", 100)
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
    command = [kit.file, tmp_path / "images", tmp_path / "store", tmp_path / "log", "1", "0"]
    full = subprocess.run(
        [sys.executable, "-c", limited + SCRIPT, *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert full.returncode == 1
    assert "no space left to write" in full.stderr
    assert "Everything finished is kept" in full.stderr
    assert not list((tmp_path / "store").rglob("*.part"))
    kept = sum(len(read_chunk(path)[0]) for path in (tmp_path / "store").rglob("*.chunk"))
    assert kept in ((0, 36) if limit == 5000 else (36, 100))
    free = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command], capture_output=True, text=True, check=True
    )
    assert int(free.stdout) == 100 - kept


def test_leftovers_of_killed_processes_are_removed(
    kit: Any, tmp_path: Path, sightings: Sightings
) -> None:
    store = FeatureStore(tmp_path / "store")
    few = sightings.select(np.arange(5))
    store.ensure(few, kit.tiny(), executor=local(1))
    chunks = next((tmp_path / "store").glob("tiny-*/chunks"))
    (chunks / ".abc.chunk.1234.part").write_bytes(b"half")
    store.ensure(sightings, kit.tiny(), executor=local(1))
    assert list(chunks.iterdir()) == []


@pytest.mark.parametrize("damage", ["table", "sidecar", "schema"])
def test_damaged_files_are_named(
    kit: Any, tmp_path: Path, sightings: Sightings, damage: str
) -> None:
    store = FeatureStore(tmp_path / "store")
    store.ensure(sightings, kit.tiny(), executor=local(1))
    table = next((tmp_path / "store").rglob("*.npy"))
    sidecar = table.with_suffix(".json")
    wanted = sightings
    if damage == "table":
        table.write_bytes(table.read_bytes()[:500])
    else:
        wanted = sightings.select(np.arange(99, -1, -1))  # needs the sidecar's keys
        other = json.dumps({**json.loads(sidecar.read_text()), "schema": "resight.features/9"})
        sidecar.write_text("{" if damage == "sidecar" else other)
    with pytest.raises(StoreError, match=table.stem):
        store.ensure(wanted, kit.tiny(), executor=local(1))


def test_bad_arguments(kit: Any, tmp_path: Path, sightings: Sightings) -> None:
    store = FeatureStore(tmp_path / "store")
    with pytest.raises(InputError, match="on_error='skip'"):
        store.ensure(sightings, kit.tiny(), on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no sightings"):
        store.ensure(sightings.select(np.arange(0)), kit.tiny())
    with pytest.raises(InputError, match="mirror=True goes with a descriptor's name"):
        store.ensure(sightings, kit.tiny(), mirror=True)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        FeatureStore(tmp_path / "file")


def test_a_descriptor_that_gives_nonsense_is_reported(
    kit: Any, tmp_path: Path, sightings: Sightings
) -> None:
    broken = kit.tiny()
    broken.describe = lambda image: np.full(24, np.nan)
    few = sightings.select([0, 1])
    with pytest.raises(InputError, match="not finite"):
        FeatureStore(tmp_path / "store").ensure(few, broken, executor=local(1))
    broken.describe = lambda image: np.zeros(3)
    with pytest.raises(InputError, match=r"gave shape \(3,\) instead of \(24,\)"):
        FeatureStore(tmp_path / "store").ensure(few, broken, executor=local(1))
