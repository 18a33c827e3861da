"""Jobs: seen by every process, resumed by whoever is alive, nothing twice and nothing lost."""

from __future__ import annotations

import io
import multiprocessing
import os
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from toymodel import CountedModel, StripeModel

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.gallery import Gallery, jobs, spool
from resight.gallery.forgetting import forget
from resight.gallery.jobs import Jobs, Running, Worker
from resight.gallery.log import latest, operator
from resight.gallery.spool import Draft, spool_folder

BY = operator()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"LEASE": 1.0, "BEAT": 0.05, "POLL": 0.05, "REGROUP": 0.0}.items():
        monkeypatch.setattr(jobs, name, seconds)


@pytest.fixture
def queue(uri: str, tmp_path: Path) -> Iterator[Jobs]:
    """The jobs of an empty gallery."""
    made = Jobs(Gallery.create(uri, StripeModel()), tmp_path / "spool")
    yield made
    made.gallery.close()


def upload(queue: Jobs, people: Sightings, prefix: str = "") -> Draft:
    draft = queue.draft()
    for name, file in zip(people.paths.tolist(), people.files(), strict=True):
        draft.write(prefix + name, [file.read_bytes()])
    return draft


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def work(queue: Jobs) -> None:
    while Worker(queue).work_once():
        pass


def test_a_folder_is_added_and_the_upload_is_removed(queue: Jobs, people: Sightings) -> None:
    draft = upload(queue, people)
    draft.write("camera-1/0001/broken.png", [b"no picture"])
    job = queue.start("add", BY, draft=draft)
    assert (queue.get(job.key).state, len(queue.gallery)) == ("queued", 0)
    elsewhere = Jobs(Gallery.open(queue.gallery.uri), queue.spool)
    assert [one.key for one in elsewhere.list()] == [job.key]  # seen by every process
    work(queue)
    done = elsewhere.get(job.key)
    assert (done.state, done.share, done.done, done.total) == ("done", 1.0, 36, 37)
    assert done.words == "36 of 37 sightings are in the gallery; 1 could not be read"
    [[name, reason]] = done.failures
    assert (name, done.failed) == ("camera-1/0001/broken.png", 1)
    assert "cannot" in reason or "image" in reason
    assert len(queue.gallery) == 36
    assert not list(queue.spool.iterdir())
    assert {"start add", "add"} <= {one["what"] for one in latest(queue.gallery.engine, 9)}


def test_zip_table_and_camera(queue: Jobs, people: Sightings) -> None:
    names, files = people.paths.tolist(), [file.read_bytes() for file in people.files()]
    draft = queue.draft()
    content = dict(zip(names[:4], files, strict=False))
    junk = {"__MACOSX/._x.png": b"x", ".hidden.png": b"x"}
    draft.write("some.zip", [zipped(content | junk)])
    queue.start("add", BY, draft=draft)
    draft = queue.draft()
    draft.write("table.csv", [b"path,person,camera,time\nx/a.png,Zo\xc3\xab,door,7\n"])
    draft.write("x/a.png", [files[4]])
    queue.start("add", BY, draft=draft)
    draft = queue.draft()
    draft.write("b.png", [files[5][:100], files[5][100:]])
    queue.start("add", BY, draft=draft, camera="garden")
    work(queue)
    table = queue.gallery.view.table
    assert [job.state for job in queue.list()] == ["done"] * 3
    assert len(table) == 6
    assert table.persons[table.cameras == "door"].tolist() == ["Zoë"]
    assert table.persons[table.cameras == "garden"].tolist() == [""]


def test_a_video_is_cut_and_added(queue: Jobs, tmp_path: Path, people: Sightings) -> None:
    still = np.full((240, 320, 3), 90, np.uint8)
    figure = cv2.resize(cv2.imread(str(people.files()[0])), (48, 110))
    film = cv2.VideoWriter(str(tmp_path / "a.avi"), cv2.VideoWriter_fourcc(*"MJPG"), 10, (320, 240))
    for step in range(24):
        frame = still.copy()
        if step > 3:
            frame[100:210, 10 * step : 10 * step + 48] = figure
        film.write(frame)
    film.release()
    draft = queue.draft()
    draft.write("a.avi", [(tmp_path / "a.avi").read_bytes()])
    queue.start("add", BY, draft=draft, camera="gate", find="motion", start=1000.0)
    work(queue)
    [job] = queue.list()
    assert job.state == "done", job.words
    table = queue.gallery.view.table
    assert len(table) == job.done > 0
    assert set(table.cameras.tolist()) == {"gate"}
    assert (table.times >= 1000).all()
    assert "" not in table.sequences.tolist()


def test_what_is_no_upload_is_refused(
    queue: Jobs, people: Sightings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="nothing to add"):
        queue.start("add", BY)
    with pytest.raises(InputError, match="unknown kind of job 'sing'"):
        queue.start("sing", BY)  # type: ignore[arg-type]
    for name in ("../x.png", "/etc/x.png", "a/../../x.png", "c:x.png", "a\\..\\..\\x.png"):
        with pytest.raises(InputError, match="inside the upload"):
            queue.draft().write(name, [b""])
    monkeypatch.setattr(spool, "MAX_UPLOAD", 1000)
    draft = queue.draft()
    with pytest.raises(InputError, match="larger than"):
        draft.write("film.mp4", iter([b"x" * 600, b"x" * 600]))
    assert not draft.folder.exists()


def failing(queue: Jobs, files: dict[str, bytes]) -> str:
    draft = queue.draft()
    for name, content in files.items():
        draft.write(name, [content])
    job = queue.start("add", BY, draft=draft)
    work(queue)
    done = queue.get(job.key)
    assert (done.state, len(queue.gallery)) == ("failed", 0)
    assert not list(queue.spool.iterdir())
    return done.words


def test_bad_uploads_fail_with_a_reason(
    queue: Jobs, people: Sightings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    image = people.files()[0]
    assert "no image, zip" in failing(queue, {"notes.txt": b"x"})
    assert "damaged, encrypted or no zip" in failing(queue, {"a.zip": b"PK nothing"})
    assert "inside the upload" in failing(queue, {"a.zip": zipped({"../../x.png": b"x"})})
    assert "which camera recorded" in failing(queue, {"a.mp4": b"x"})
    outside = f"path,person,camera\n{image},Zoe,door\n".encode()
    assert "not part of the upload" in failing(queue, {"a.csv": outside})
    climbing = b"path,person,camera\n../../../x.png,Zoe,door\n"
    assert "not part of the upload" in failing(queue, {"a.csv": climbing})
    monkeypatch.setattr(spool, "MAX_UNPACKED", 10_000)
    bomb = zipped({"door/a.png": b"0" * 20_000})
    assert len(bomb) < 300
    assert "unpacks to more than" in failing(queue, {"a.zip": bomb})
    # One that lies about its size: no more is written than is declared.
    lying = bomb.replace((20_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert lying != bomb
    assert "damaged" in failing(queue, {"a.zip": lying})
    (tmp_path / "lying.zip").write_bytes(lying)
    with pytest.raises(InputError, match="damaged"):
        spool._unpack(tmp_path / "lying.zip", tmp_path)
    assert (tmp_path / "door" / "a.png").stat().st_size <= 100


def test_what_must_not_be_done_twice_is_queued_once(queue: Jobs) -> None:
    first = queue.start("group", BY)
    assert queue.start("group", BY).key == first.key
    queue.cancel(first.key, BY)
    assert queue.start("group", BY).key != first.key
    with pytest.raises(InputError, match="is cancelled already"):
        queue.cancel(first.key, BY)
    with pytest.raises(InputError, match="no job 'x'"):
        queue.get("x")


def test_a_cancelled_job_ends_and_leaves_what_it_stored(
    queue: Jobs, people: Sightings, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, stored = Gallery.add, []

    def slowly(self: Gallery, *args: Any, on_batch: Any, **named: Any) -> Any:
        def told(ids: list[str]) -> None:
            stored.extend(ids)
            time.sleep(0.1)
            on_batch(ids)

        return add(self, *args, on_batch=told, batch_size=2, **named)

    monkeypatch.setattr(Gallery, "add", slowly)
    job = queue.start("add", BY, draft=upload(queue, people))
    worker = threading.Thread(target=Worker(queue).work_once)
    worker.start()
    while len(stored) < 4:
        time.sleep(0.01)
    queue.cancel(job.key, BY)
    worker.join()
    assert queue.get(job.key).state == "cancelled"
    assert sorted(queue.gallery.view.table.ids.tolist()) == sorted(stored)
    assert len(stored) < 36
    assert not list(queue.spool.iterdir())


def test_killed_half_way_another_process_goes_on(
    uri: str, tmp_path: Path, people: Sightings
) -> None:
    """SIGKILL while adding; the next worker takes over: nothing twice, nothing lost."""
    import killable

    log = tmp_path / "described"
    log.touch()
    gallery = Gallery.create(uri, CountedModel(str(log), seconds=0.03))
    queue = Jobs(gallery, tmp_path / "spool")
    job = queue.start("add", BY, draft=upload(queue, people))
    child = multiprocessing.get_context("spawn").Process(
        target=killable.run_jobs, args=(uri, str(tmp_path / "spool"))
    )
    child.start()
    deadline = time.monotonic() + 60
    while log.stat().st_size < 34 and time.monotonic() < deadline:  # the first batch is 32
        time.sleep(0.01)
    child.kill()
    child.join()
    assert queue.get(job.key).state == "running"
    deadline = time.monotonic() + 30
    while queue.get(job.key).open and time.monotonic() < deadline:
        Worker(queue).work_once()
        time.sleep(0.05)
    done = queue.get(job.key)
    assert (done.state, done.done, done.total, done.failed) == ("done", 36, 36, 0)
    assert len(gallery) == 36
    assert len(set(gallery.view.table.ids.tolist())) == 36
    assert not list(queue.spool.iterdir())
    gallery.close()


def test_an_upload_left_by_a_kill_after_the_last_word_goes(
    queue: Jobs, people: Sightings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died between saying "done" and removing the files."""
    job = queue.start("add", BY, draft=upload(queue, people))
    with monkeypatch.context() as killed:
        killed.setattr(Jobs, "drop_upload", lambda self, job: None)
        Worker(queue).work_once()
    waiting = queue.start("add", BY, draft=upload(queue, people))
    assert queue.get(job.key).state == "done"
    queue.sweep()
    assert queue.upload(job).files.is_dir()  # its process may still be about to remove them
    time.sleep(1.1)  # the lease has ended
    queue.sweep()
    assert not queue.upload(job).folder.exists()
    assert queue.upload(waiting).files.is_dir()
    Worker(queue).work_once()
    assert not list(queue.spool.iterdir())


def test_a_job_of_a_living_process_is_not_taken(queue: Jobs) -> None:
    job = queue.start("group", BY)
    held = queue.claim("me")
    assert held is not None
    assert queue.claim("you") is None
    time.sleep(1.1)  # the lease has ended
    taken = queue.claim("you")
    assert taken is not None
    assert taken.key == job.key
    with pytest.raises(jobs._StoppedError):
        queue.update(held, words="mine")
    Running(queue, taken).run()
    assert queue.get(job.key).state == "done"


def test_progress_does_not_make_everybody_read_the_gallery_again(
    gallery: Gallery, tmp_path: Path
) -> None:
    queue, before = Jobs(gallery, tmp_path), gallery.view
    queue.start("group", BY)
    work(queue)
    assert gallery.view is before


def test_the_worker_has_unknowns_grouped_when_there_is_news(
    gallery: Gallery, tmp_path: Path
) -> None:
    from resight.gallery.groups import Groups

    queue = Jobs(gallery, tmp_path)
    worker = Worker(queue)
    worker.start()
    deadline = time.monotonic() + 30
    while Groups.read(gallery.engine) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    kept = Groups.read(gallery.engine)
    assert kept is not None
    assert not kept.stale(gallery.view)
    worker.end()
    worker.join()


def test_erasing_somebody_takes_their_traces_out_of_jobs(queue: Jobs, people: Sightings) -> None:
    draft = upload(queue, people)
    picture = np.random.default_rng(0).integers(0, 255, (128, 64, 3), np.uint8)
    draft.write("camera-1/Zoe Unique/x.png", [cv2.imencode(".png", picture)[1].tobytes()])
    draft.write("camera-1/Zoe Unique/broken.png", [b"x"])
    queue.start("add", BY, draft=draft)
    queue.start("group", BY)
    work(queue)
    assert "Zoe Unique" in str(queue.list()[1].failures)
    done = forget(queue.gallery, "Zoe Unique")
    assert done.sightings == 1
    assert [job.kind for job in queue.list()] == ["group"]


def test_where_uploads_wait(queue: Jobs, uri: str, tmp_path: Path) -> None:
    folder = spool_folder(queue.gallery.engine)
    assert folder == tmp_path / "gallery" / "spool" or folder.name.startswith("resight-spool-")
    old = queue.draft()
    os.utime(old.folder, (0, 0))
    fresh = queue.draft()
    queue.sweep()
    assert list(queue.spool.iterdir()) == [fresh.folder]


def _killed(*given: Any, **more: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", [(Jobs, "_write"), (Gallery, "record")])
def test_a_kill_while_a_job_is_started_leaves_no_files_without_a_job(
    queue: Jobs, people: Sightings, monkeypatch: pytest.MonkeyPatch, moment: tuple[type, str]
) -> None:
    """Before the job is written they are a draft, which goes; afterwards the job adds them."""
    draft = upload(queue, people)
    with monkeypatch.context() as killed:
        killed.setattr(*moment, _killed)
        with pytest.raises(KeyboardInterrupt):
            queue.start("add", BY, draft=draft)
    jobs = queue.list()
    work(queue)
    assert len(queue.gallery) == (len(people) if jobs else 0)
    for folder in queue.spool.iterdir():
        os.utime(folder, (0, 0))
    queue.sweep()
    assert not list(queue.spool.iterdir())
