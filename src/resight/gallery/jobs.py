"""Jobs: long work of a gallery that any process may begin, watch, cancel, and take over.

A job is a document of the gallery. Whoever runs it holds a lease and renews it while working; when
a process dies its lease ends and another one goes on with the job. What jobs do can be repeated
(sightings are known by what they show, embeddings by their model), so nothing is lost and nothing
is done twice.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from resight.errors import InputError, ResightError, unknown_name
from resight.gallery.engines import connect
from resight.gallery.gallery import Gallery
from resight.gallery.groups import Groups, group
from resight.gallery.log import Actor, operator
from resight.gallery.manifest import JOBS
from resight.gallery.spool import Draft, spool_folder
from resight.validation import parse_json

_log = logging.getLogger(__name__)
Kind = Literal["add", "improve", "rebuild", "group"]
State = Literal["queued", "running", "done", "failed", "cancelled"]
_KEPT = 100  # jobs that are kept after their end
_FORGOTTEN = 86_400.0  # seconds after which an upload that no job names is removed
# Seconds: how long a lease holds, how often it is renewed, how often jobs and groups are looked at.
LEASE, BEAT, POLL, REGROUP = 15.0, 2.0, 1.0, 30.0
_LISTED = 1000  # failures whose reasons are kept


@dataclass(frozen=True)
class Job:
    """One job.

    `settings` are what it was told; of "add": ``upload`` (of the spool), ``camera``, ``start``,
    ``find``; "rebuild" uses the model that "improve" found. `result` has of "improve" the figures
    of `Candidate`, ``words``, ``adopted``, of "group" ``groups``.
    """

    key: str  # later jobs have greater ones
    kind: Kind
    by: dict[str, str]
    settings: dict[str, Any] = field(default_factory=dict)
    state: State = "queued"
    words: str = "waiting"  # what it does
    share: float = 0.0  # that is done
    done: int = 0  # sightings that are in the gallery now
    total: int = 0  # of how many
    failures: list[list[str]] = field(default_factory=list)  # (name, reason) of the first 1000
    failed: int = 0  # how many could not be added
    result: dict[str, Any] = field(default_factory=dict)
    created: float = field(default_factory=time.time)
    ended: float | None = None
    owner: str = ""  # who runs it
    until: float = 0.0  # the end of the owner's lease

    @property
    def open(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("queued", "running")


class _StoppedError(Exception):
    """The job was cancelled, or another process has it now."""


class Jobs:
    """The jobs of a gallery, whose uploads wait in a spool (see `spool_folder`)."""

    def __init__(self, gallery: Gallery, spool: Path | None = None) -> None:
        self.gallery = gallery
        self._engine = connect(gallery.uri)  # nobody waits for a lease to be renewed
        self.spool = spool_folder(gallery.engine, spool)

    def list(self) -> list[Job]:
        """Return all jobs, the newest first."""
        found = map(self._read, reversed(self._engine.names(JOBS)))
        return [job for job in found if job is not None]

    def get(self, key: str) -> Job:
        """Return one job."""
        job = self._read(JOBS + key)
        if job is None:
            raise InputError(f"no job {key!r} in this gallery; finished ones are kept for a while")
        return job

    def latest(self, *kinds: Kind) -> Job | None:
        """Return the newest job of some kinds."""
        return next((job for job in self.list() if job.kind in kinds), None)

    def draft(self) -> Draft:
        """Begin an upload."""
        draft = Draft(self.spool / secrets.token_hex(8))
        draft.files.mkdir(mode=0o700, parents=True)
        return draft

    def start(self, kind: Kind, by: Actor, *, draft: Draft | None = None, **settings: Any) -> Job:
        """Put a job in the queue; one of the same kind that is open is returned, but for "add"."""
        if kind not in get_args(Kind):
            raise unknown_name("kind of job", kind, get_args(Kind))
        if kind == "add" and draft is None:
            raise InputError("nothing to add; upload images, a zip, a CSV table or a video")
        if draft is not None:
            settings["upload"] = draft.key
        key = f"{time.time_ns() // 1_000_000:013d}-{secrets.token_hex(4)}"
        job = Job(key, kind, asdict(by), settings)
        with self._engine.transaction():
            known = self.list()
            same = next((one for one in known if one.kind == kind and one.open), None)
            if same is not None and kind != "add":
                return same
            old = [JOBS + one.key for one in known if not one.open][_KEPT:]
            self._engine.drop(old, searched=False)
            self._write(job)
        self.gallery.record(by, f"start {kind}", job=key)
        return job

    def cancel(self, key: str, by: Actor) -> Job:
        """Cancel a job; what it has stored stays."""
        with self._engine.transaction():
            job = self.get(key)
            if not job.open:
                raise InputError(f"this job is {job.state} already")
            job = replace(job, state="cancelled", words="cancelled", ended=time.time(), owner="")
            self._write(job)
        if not job.until:  # nobody is working on it
            self.drop_upload(job)
        self.gallery.record(by, f"cancel {job.kind}", job=key)
        return job

    def claim(self, owner: str) -> Job | None:
        """Take the oldest job that waits, or whose process has died; None if there is none."""
        with self._engine.transaction():
            for job in reversed(self.list()):
                lost = job.state == "running" and job.until < time.time()
                if not lost and job.state != "queued":
                    continue
                if "upload" not in job.settings or self.upload(job).files.is_dir():
                    until = time.time() + LEASE
                    job = replace(job, state="running", owner=owner, until=until, words="starting")
                    self._write(job)
                    return job
        return None

    def update(self, job: Job, **changes: Any) -> Job:
        """Write what became of a job that one holds; refused once somebody else does."""
        with self._engine.transaction():
            now = self._read(JOBS + job.key)
            if now is None or (now.owner, now.state) != (job.owner, "running"):
                raise _StoppedError
            job = replace(now, **changes, until=time.time() + LEASE)
            self._write(job)
        return job

    def note(self, key: str, **result: Any) -> None:
        """Add to the result of a job that has ended."""
        with self._engine.transaction():
            job = self.get(key)
            self._write(replace(job, result={**job.result, **result}))

    def upload(self, job: Job) -> Draft:
        """Return the files of a job."""
        return Draft(self.spool / str(job.settings["upload"]))

    def drop_upload(self, job: Job) -> None:
        """Remove the files of a job."""
        if "upload" in job.settings:
            self.upload(job).drop()

    def sweep(self) -> None:
        """Remove uploads of ended jobs whose process died before it could, and forgotten ones."""
        now, folders = time.time(), [*self.spool.glob("*")]  # every job was written after its files
        jobs = {job.settings.get("upload"): job for job in self.list()} if folders else {}
        for folder in folders:
            job = jobs.get(folder.name)
            with suppress(FileNotFoundError):  # removed meanwhile
                if job is None:
                    ended = now - folder.stat().st_mtime > _FORGOTTEN
                else:
                    ended = not job.open and job.until < now
                if ended:
                    Draft(folder).drop()

    def _read(self, name: str) -> Job | None:
        content = self._engine.get(name)
        return None if content is None else Job(**parse_json(content))

    def _write(self, job: Job) -> None:
        document = json.dumps(asdict(job), allow_nan=False).encode()
        self._engine.put({JOBS + job.key: document}, searched=False)


class Running:
    """A job while it runs: says how far it is, and ends when it was cancelled or lost."""

    def __init__(self, jobs: Jobs, job: Job) -> None:
        self.jobs, self.job, self.gallery = jobs, job, jobs.gallery
        self.by = Actor(**job.by)
        self._news: dict[str, Any] = {}
        self._ended, self._stopped = threading.Event(), threading.Event()

    def step(self, words: str, share: float) -> None:
        """Say what is done now."""
        self.tell(words=words, share=round(share, 4))

    def tell(self, **news: Any) -> None:
        """Change what everybody sees of the job at the next beat; ends a job that was stopped."""
        if self._stopped.is_set():
            raise _StoppedError
        self._news = {**self._news, **news}

    def run(self) -> None:
        """Do the work, whatever happens."""
        beating = threading.Thread(target=self._beat, daemon=True)
        beating.start()
        end: dict[str, Any] = {}
        work, broken = _WORK[self.job.kind]
        try:
            result = work(self)
            end = {"state": "done", "share": 1.0, "result": result, "words": result["words"]}
        except _StoppedError:
            pass
        except ResightError as error:
            end = {"state": "failed", "words": str(error)}
        except Exception:
            _log.exception("job %s failed", self.job.kind)
            end = {"state": "failed", "words": broken}
        self._ended.set()
        beating.join()
        try:
            self.job = self.jobs.update(self.job, **self._news | end | {"ended": time.time()})
        except _StoppedError:
            self.job = self.jobs.get(self.job.key)
        if not self.job.open:
            self.jobs.drop_upload(self.job)

    def _beat(self) -> None:
        """Renew the lease, with the news, until the work has ended or is not ours any longer."""
        while not self._ended.wait(BEAT):
            try:
                self.job = self.jobs.update(self.job, **self._news)
            except _StoppedError:
                self._stopped.set()
                return
            except ResightError as error:  # the database may be back before the lease has ended
                _log.warning("job %s: %s", self.job.key, error)


def _add(run: Running) -> dict[str, Any]:
    """Add what was uploaded; after a kill, what is stored already is passed over."""
    draft = run.jobs.upload(run.job)
    how = {name: value for name, value in run.job.settings.items() if name != "upload"}
    run.step("reading the upload", 0.0)
    parts = draft.sightings(on_frame=lambda n: run.tell(words="cutting people out"), **how)
    total, done, new, failures = sum(map(len, parts)), 0, 0, []

    def on_batch(ids: list[str]) -> None:
        nonlocal done
        done += len(ids)
        run.tell(words="adding", done=done, total=total, share=round(done / total, 4))

    for part in parts:
        added = run.gallery.add(part, on_batch=on_batch)
        done, new = done + len(added.already), new + len(added.added)
        failures += added.failures
    listed = [[str(one.path), str(one.reason)] for one in failures[:_LISTED]]
    run.tell(done=done, total=total, failures=listed, failed=len(failures))
    run.gallery.record(run.by, "add", added=new, job=run.job.key)
    words = f"{done:,} of {total:,} sightings are in the gallery"
    return {"words": words + (f"; {len(failures):,} could not be read" if failures else "")}


def _improve(run: Running) -> dict[str, Any]:
    """Fit a model on the answers, measure what it gains, and keep it."""
    from resight.gallery.teaching import keep_candidate, refit

    candidate = refit(run.gallery, run.step)
    keep_candidate(run.gallery.engine, candidate)
    words = candidate.words + ("" if candidate.better else ", so it was kept")
    return {**candidate.figures, "adopted": False, "words": words}


def _rebuild(run: Running) -> dict[str, Any]:
    """Use the model that "improve" found."""
    from resight.gallery.teaching import adopt, kept_candidate

    candidate = kept_candidate(run.gallery.engine)
    gain = {"before": candidate.before, "after": candidate.after}
    adopt(run.gallery, candidate, run.step)
    run.gallery.record(run.by, "model adopted", gain=gain)
    words = f"{candidate.words}; it is now in use"
    if candidate.uncalibrated is not None:
        words += f", without probabilities: {candidate.uncalibrated}"
    return {**gain, "adopted": True, "words": words}


def _group(run: Running) -> dict[str, Any]:
    n = len(group(run.gallery, run.step).groups)
    return {"groups": n, "words": f"{n:,} groups of unknown sightings"}


_WORK: dict[Kind, tuple[Callable[[Running], dict[str, Any]], str]] = {
    "add": (_add, "adding failed; what was stored before is safe, the server's log says why"),
    "improve": (_improve, "retraining failed; the current model is unchanged"),
    "rebuild": (_rebuild, "changing the model failed; the current model is unchanged"),
    "group": (_group, "grouping failed; the groups found before are unchanged"),
}


class Worker(threading.Thread):
    """Runs jobs one after the other, and has unknown sightings grouped when there is news."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__(name="resight jobs", daemon=True)
        self.jobs = jobs
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._ending = threading.Event()
        self._looked = 0.0

    def run(self) -> None:
        """Work until `end` is called."""
        while not self._ending.is_set():
            try:
                busy = self.work_once() or self._regroup()
            except ResightError as error:  # such as a database that is away for a while
                _log.warning("jobs: %s", error)
                busy = False
            if not busy:
                self._ending.wait(POLL)

    def work_once(self) -> bool:
        """Run the next job, if there is one."""
        self.jobs.sweep()
        job = self.jobs.claim(self.owner)
        if job is not None:
            Running(self.jobs, job).run()
        return job is not None

    def end(self) -> None:
        """Begin no other job; one that runs is taken over by whoever comes next."""
        self._ending.set()

    def _regroup(self) -> bool:
        """Have the unknown sightings grouped, if the groups that are kept are old."""
        if time.monotonic() - self._looked < REGROUP:
            return False
        self._looked, view = time.monotonic(), self.jobs.gallery.view
        kept = Groups.read(self.jobs.gallery.engine)
        old = len(view.table) > 1 if kept is None else kept.stale(view)
        if old:
            self.jobs.start("group", operator("server"))
        return old
