"""Improve model: what was learned, the latest new model, and the way back.

Training one, and using it, are jobs (see `adding`).
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field

from resight.gallery.jobs import Job, Jobs
from resight.gallery.manifest import CANDIDATE, models
from resight.gallery.teaching import SURE, why_not
from resight.web.answers import Answer
from resight.web.visiting import Administering, Viewer, twins

router = APIRouter()


class RefitState(Answer):
    """Where it is; `before` and `after` are percentages of rank 1 on people held out.

    "ready": a better model waits to be adopted; "worse": one that finds no more. `gain` is the 95%
    interval of the difference, by resampling the people; `certain` whether chance would rarely
    make such a gain.
    """

    status: Literal["idle", "running", "ready", "worse", "done", "failed", "undone"] = "idle"
    words: str = ""
    share: float = 0.0
    before: Annotated[float | None, Field(examples=[71.0])] = None
    after: float | None = None
    gain: tuple[float, float] | None = None
    certain: bool = False
    queries: int = 0
    people: int = 0
    missing: str | None = None
    learned: dict[str, int]
    can_undo: bool = False
    models: list[dict[str, Any]]


@twins(router, "/refit", RefitState, "improving")
def watch(visit: Viewer) -> Any:
    """Return what was learned since, and the state and gain of the latest new model."""
    current = visit.site.gallery.view.manifest.current
    return visit.answer("refit.html", state(visit.site.jobs), current=current)


@router.post("/refit/undo", response_model=RefitState, tags=["improving"])
def undo(visit: Administering) -> Any:
    """Go back to the model before the last one."""
    jobs = visit.site.jobs
    visit.record("undo model")
    jobs.gallery.undo_rebuild()
    job = jobs.latest("improve", "rebuild")
    if job is not None:
        jobs.note(job.key, undone=True)
    return visit.done(state(jobs), "/refit")


def state(jobs: Jobs) -> RefitState:
    """Return where it is, what is missing to start, and whether there is a way back."""
    gallery, job = jobs.gallery, jobs.latest("improve", "rebuild")
    view = gallery.view
    current = view.manifest.current
    since = Counter(str(entry.kind) for entry in view.labels.active if entry.when > current.when)
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
