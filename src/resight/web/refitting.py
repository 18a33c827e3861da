"""Improving the model as the page shows it: the latest job of that kind, in words."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from resight.gallery.history import models
from resight.gallery.jobs import Job, Jobs, Worker
from resight.gallery.log import Actor
from resight.gallery.manifest import CANDIDATE
from resight.gallery.teaching import why_not

Status = Literal["idle", "running", "done", "worse", "failed", "undone"]


class RefitState(BaseModel):
    """Where the refit is; percentages of rank 1 on people held out."""

    status: Status = "idle"
    words: str = ""
    share: float = 0.0
    before: float | None = None
    after: float | None = None
    queries: int = 0
    people: int = 0
    missing: str | None = None
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
        told = _told(job) if job is not None else {}
        return RefitState(
            **told,
            missing=why_not(view),
            can_undo=view.manifest.current.origin == "refit",
            models=models(gallery.engine, view.manifest),
        )

    def start(self, by: Actor) -> None:
        """Start a refit unless one is running."""
        self._jobs.start("improve", by, adopt=True)

    def adopt_anyway(self, by: Actor) -> None:
        """Use a refitted model although it found fewer."""
        if self._jobs.gallery.engine.get(CANDIDATE) is not None:
            self._jobs.start("rebuild", by)

    def undo(self) -> None:
        """Go back to the model before the last refit."""
        self._jobs.gallery.undo_rebuild()
        job = self._jobs.latest("improve", "rebuild")
        if job is not None:
            self._jobs.note(job.key, undone=True)

    def wait(self) -> None:
        """Do what is to be done here and now, as where no worker runs."""
        while Worker(self._jobs).work_once():
            pass


def _told(job: Job) -> dict[str, Any]:
    """Say of a job what the page shows."""
    figures = {k: v for k, v in job.result.items() if k in ("before", "after", "queries", "people")}
    status: Status = "running"
    if job.result.get("undone"):
        return {"status": "undone", "words": "went back to the earlier model"}
    if not job.open:
        status = "failed" if job.state != "done" else "done"
        if job.state == "done" and job.result.get("adopted") is False:
            status = "worse"
    return {"status": status, "words": job.words, "share": job.share, **figures}
