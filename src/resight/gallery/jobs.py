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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from resight.errors import InputError, ResightError, unknown_name
from resight.gallery.engines import connect
from resight.gallery.gallery import Gallery
from resight.gallery.log import Actor, operator
from resight.gallery.manifest import JOBS
from resight.gallery.spool import Draft, spool_folder
from resight.validation import parse_json

Kind = Literal["add", "improve", "rebuild", "group"]
State = Literal["queued", "running", "done", "failed", "cancelled"]
_OPEN = ("queued", "running")
_KEPT = 100  # jobs that are kept after their end


@dataclass
class Timing:
    """Seconds: how long a lease holds, how often it is renewed and how often work is looked for."""

    lease: float = 15.0
    beat: float = 2.0
    poll: float = 1.0
    regroup: float = 30.0


TIMING = Timing()


@dataclass(frozen=True)
class Job:
    """One job.

    `settings` are what it was told; of "add": ``upload`` (of the spool), ``camera``, ``start``,
    ``find``; of "improve": ``adopt``, whether a better model is used at once; of "rebuild":
    ``upload`` of a model's folder, or nothing for the model that "improve" found. `result` has of
    "improve" the figures of `Candidate`, ``words``, ``adopted``, of "group" ``groups``.
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
        return self.state in _OPEN


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
        names = self._engine.names(JOBS)
        found = (self._read(name) for name in reversed(names))
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
        return Draft.new(self.spool)

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
                if draft is not None:
                    draft.drop()
                return same
            old = [JOBS + one.key for one in known if not one.open][_KEPT:]
            self._engine.drop(old, searched=False)
            self._write(job)
        if draft is not None:
            self.upload(job)
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
                    until = time.time() + TIMING.lease
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
            job = replace(now, **changes, until=time.time() + TIMING.lease)
            self._write(job)
        return job

    def note(self, key: str, **result: Any) -> None:
        """Add to the result of a job that has ended."""
        with self._engine.transaction():
            job = self.get(key)
            self._write(replace(job, result={**job.result, **result}))

    def upload(self, job: Job) -> Draft:
        """Return the files of a job."""
        return Draft.taken(self.spool, str(job.settings["upload"]))

    def drop_upload(self, job: Job) -> None:
        """Remove the files of a job."""
        if "upload" in job.settings:
            self.upload(job).drop()

    def sweep(self) -> None:
        """Remove uploads of ended jobs whose process died before it could."""
        waiting = {folder.name for folder in self.spool.glob("*")}
        for job in self.list() if waiting else ():
            if job.settings.get("upload") in waiting and not job.open and job.until < time.time():
                self.drop_upload(job)

    def close(self) -> None:
        """Let go of the connection."""
        self._engine.close()

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
        from resight.gallery.work import WORK

        beating = threading.Thread(target=self._beat, daemon=True)
        beating.start()
        try:
            result = WORK[self.job.kind](self)
            end: dict[str, Any] = {"state": "done", "share": 1.0, "result": result}
            end["words"] = result.get("words", "done")
        except _StoppedError:
            end = {}
        except ResightError as error:
            end = {"state": "failed", "words": str(error)}
        except Exception:
            logging.getLogger(__name__).exception("job %s failed", self.job.kind)
            end = {"state": "failed", "words": _BROKEN[self.job.kind]}
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
        while not self._ended.wait(TIMING.beat):
            try:
                self.job = self.jobs.update(self.job, **self._news)
            except _StoppedError:
                self._stopped.set()
                return
            except ResightError as error:  # the database may be back before the lease has ended
                logging.getLogger(__name__).warning("job %s: %s", self.job.key, error)


_BROKEN = {
    "add": "adding failed; what was stored before is safe, the server's log says why",
    "improve": "retraining failed; the current model is unchanged",
    "rebuild": "changing the model failed; the current model is unchanged",
    "group": "grouping failed; the groups found before are unchanged",
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
                logging.getLogger(__name__).warning("jobs: %s", error)
                busy = False
            if not busy:
                self._ending.wait(TIMING.poll)

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
        from resight.gallery.groups import Groups

        if time.monotonic() - self._looked < TIMING.regroup:
            return False
        self._looked, view = time.monotonic(), self.jobs.gallery.view
        kept = Groups.read(self.jobs.gallery.engine)
        if (len(view.table) > 1 and kept is None) or (kept is not None and kept.stale(view)):
            self.jobs.start("group", operator("server"))
            return True
        return False
