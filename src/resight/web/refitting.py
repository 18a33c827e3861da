"""Improving the model as the page shows it: what was learned, the latest job, the way back."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from resight.gallery.history import models
from resight.gallery.jobs import Job, Jobs, Worker
from resight.gallery.log import Actor
from resight.gallery.teaching import CANDIDATE, SURE, why_not

Status = Literal["idle", "running", "ready", "worse", "done", "failed", "undone"]


class RefitState(BaseModel):
    """Where it is; `before` and `after` are percentages of rank 1 on people held out.

    "ready": a better model waits to be adopted; "worse": one that finds no more. `gain` is the 95%
    interval of the difference, by resampling the people; `certain` whether chance would rarely
    make such a gain.
    """

    status: Status = "idle"
    words: str = ""
    share: float = 0.0
    before: Annotated[float | None, Field(examples=[71.0])] = None
    after: float | None = None
    gain: tuple[float, float] | None = None
    certain: bool = False
    queries: int = 0
    people: int = 0
    missing: str | None = None
    learned: dict[str, int] = {}
    can_undo: bool = False
    models: list[dict[str, Any]] = []


class RefitJob:
    """The job that improves the model, and the way back."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def state(self) -> RefitState:
        """Return where it is, what is missing to start, and whether there is a way back."""
        gallery, job = self._jobs.gallery, self._jobs.latest("improve", "rebuild")
        view = gallery.view
        current = view.manifest.current
        since = Counter(entry.kind for entry in view.labels.active if entry.when > current.when)
        told = {} if job is None else _told(job, gallery.engine.get(CANDIDATE) is not None)
        if told.get("status") == "done" and current.origin != "refit":
            told = {}  # the model was erased since, or replaced
        return RefitState(
            **told,
            missing=why_not(view),
            learned=dict(since),
            can_undo=current.origin == "refit",
            models=models(gallery.engine, view.manifest),
        )

    def start(self, by: Actor) -> None:
        """Train and measure a model unless one is being trained; nothing is adopted."""
        self._jobs.start("improve", by)

    def adopt(self, by: Actor) -> None:
        """Use the model that was trained."""
        if self._jobs.gallery.engine.get(CANDIDATE) is not None:
            self._jobs.start("rebuild", by)

    def undo(self) -> None:
        """Go back to the model before the last one."""
        self._jobs.gallery.undo_rebuild()
        job = self._jobs.latest("improve", "rebuild")
        if job is not None:
            self._jobs.note(job.key, undone=True)

    def wait(self) -> None:
        """Do what is to be done here and now, as where no worker runs."""
        while Worker(self._jobs).work_once():
            pass


def _told(job: Job, waits: bool) -> dict[str, Any]:
    """Say of a job what the page shows; `waits`: a model that was trained can be adopted."""
    if job.result.get("undone"):
        return {"status": "undone", "words": "went back to the earlier model"}
    names = ("before", "after", "gain", "queries", "people")
    told = {name: job.result[name] for name in names if name in job.result}
    told |= {"words": job.words, "share": job.share, "status": "running"}
    told["certain"] = job.result.get("p_value", 1.0) < SURE
    if job.open:
        return told
    if job.state != "done":
        return {**told, "status": "failed"}
    if job.result.get("adopted"):
        return {**told, "status": "done"}
    better = told.get("after", 0) > told.get("before", 0)
    return {**told, "status": "ready" if better else "worse"} if waits else {}
