"""Jobs: adding images, folders, zips, tables and videos; a better model, and the way back."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Form
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse

from resight.errors import InputError
from resight.gallery.crops import image_type
from resight.gallery.jobs import Job, Jobs
from resight.gallery.manifest import CANDIDATE, models
from resight.gallery.spool import MAX_UPLOAD, Draft
from resight.gallery.teaching import SURE, why_not
from resight.times import parse, zone_of
from resight.web import visiting
from resight.web.answers import JobsAnswer, RefitState
from resight.web.visiting import Administering, Teacher, Teaching, Viewer, Visit, twins

router = APIRouter()
_IN_MEMORY = 2**20  # bytes of a file above which it goes to the disk while it comes


@router.get("/add", response_class=HTMLResponse, include_in_schema=False)
def add_form(visit: Teacher) -> HTMLResponse:
    """Show the form to add sightings, and the jobs."""
    cameras, limit = visit.site.gallery.view.cameras, MAX_UPLOAD >> 30
    return visit.page("add.html", answer=jobs_json(visit), cameras=cameras, limit=limit)


@router.post("/jobs/add", response_model=Job, tags=["jobs"])
async def add(visit: Teacher) -> Any:
    """Add files (form fields `file`) in the background: images, folders, zip, CSV or video.

    `camera` names the camera of all of them, which a video needs; without, the folders do.
    """
    draft = await run_in_threadpool(visit.site.jobs.draft)

    def take(name: str, file: Any) -> None:  # to the disk, never into memory
        if name and file.in_memory:
            draft.write(name, [file.file_object.getvalue()])
        elif name:
            os.replace(os.fsdecode(file.actual_file_name), draft.write(name, ()))

    disk = {"UPLOAD_DIR": str(draft.folder), "UPLOAD_DELETE_TMP": False}  # moved to its place
    try:
        fields = await visiting.read_form(visit, take, MAX_MEMORY_FILE_SIZE=_IN_MEMORY, **disk)
        job = await run_in_threadpool(_start, visit, draft, fields)
    except BaseException:
        await run_in_threadpool(draft.drop)
        raise
    return _told(visit, job)


def _start(visit: Visit, draft: Draft, fields: dict[str, str]) -> Job:
    if not any(file.is_file() and file.stat().st_size for file in draft.files.rglob("*")):
        raise InputError("no file chosen; choose images, a folder, a zip, a CSV table or a video")
    settings: dict[str, Any] = {"camera": fields.get("camera", "").strip()}
    if fields.get("start", "").strip():
        settings["start"] = _moment(visit, fields["start"], "start")
    return visit.site.jobs.start("add", visit.by, draft=draft, **settings)


@router.get("/jobs.json", response_model=JobsAnswer, tags=["jobs"])
def jobs_json(visit: Viewer) -> JobsAnswer:
    """List the jobs of the gallery, newest first, with what failed and why."""
    listed = [_shown(job) for job in visit.site.jobs.list()]
    return JobsAnswer(jobs=listed, open=sum(job.open for job in listed))


@router.get("/jobs/{key}.json", response_model=Job, tags=["jobs"])
def job_json(visit: Viewer, key: str) -> Job:
    """Return one job."""
    return _shown(visit.site.jobs.get(key))


@router.post("/jobs/{key}/cancel", response_model=Job, tags=["jobs"])
def cancel(visit: Teaching, key: str) -> Any:
    """Cancel a job; what it has stored stays."""
    return _told(visit, visit.site.jobs.cancel(key, visit.by))


@router.post("/jobs/{kind}", response_model=Job, tags=["jobs"])
def start(visit: Administering, kind: Literal["improve", "rebuild", "group"]) -> Any:
    """Train a new model and measure it, use the one that was trained, or group the unknowns."""
    return _told(visit, visit.site.jobs.start(kind, visit.by))


@router.post("/keep", tags=["search"])
def keep(
    visit: Teaching,
    upload: Annotated[list[str], Form(description="keys returned by POST /upload")],
    camera: Annotated[str, Form(description="the camera that took them")],
    time: Annotated[str, Form(description="when; seconds or an ISO date")] = "",
) -> Any:
    """Store images that were uploaded for a search as sightings of the gallery."""
    if not camera.strip():
        raise visiting.FieldError("camera", "which camera took them? Give its name")
    draft = visit.site.jobs.draft()
    try:
        for number, key in enumerate(upload):
            kept = visit.site.upload(visit.by.who, key)
            kind = str(image_type(kept.image)).partition("/")[2]  # a pasted image has no name
            draft.write(f"{number:02}-{PurePosixPath(kept.name).stem}.{kind}", [kept.image])
        [sightings] = draft.sightings(camera.strip())
        if time.strip():
            times = np.full(len(sightings), _moment(visit, time, "time"))
            sightings = replace(sightings, times=times)
        added = visit.site.gallery.add(sightings)
    finally:
        draft.drop()
    if added.failures:
        raise InputError(str(added.failures[0].reason))
    ids = [*added.added, *added.already]
    visit.record("keep", query=ids)
    return visit.done({"sightings": ids}, "/search?" + "&".join(f"like={key}" for key in ids))


def _moment(visit: Visit, text: str, field: str) -> float:
    with visiting.beside(field):
        return parse(text, zone_of(visit.zone))


def _told(visit: Visit, job: Job) -> Any:
    return visit.done(_shown(job), "/refit" if job.kind in ("improve", "rebuild") else "/add")


def _shown(job: Job) -> Job:
    return replace(job, owner="", until=0.0)  # which process runs it is the server's business


# ---- improving the model


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
    told = {} if job is None else _outcome(job, gallery.engine.get(CANDIDATE) is not None)
    if told.get("status") == "done" and current.origin != "refit":
        told = {}  # the model was erased since, or replaced
    return RefitState(
        **told,
        missing=why_not(view),
        learned=dict(since),
        can_undo=current.origin == "refit",
        models=models(gallery.engine, view.manifest),
    )


def _outcome(job: Job, waits: bool) -> dict[str, Any]:
    """Say of a job what the page shows; `waits`: a model that was trained can be adopted."""
    found = job.result
    if found.get("undone"):
        return {"status": "undone", "words": "went back to the earlier model"}
    if job.open or job.state != "done":
        status = "running" if job.open else "failed"
    elif found.get("adopted"):
        status = "done"
    elif waits:
        status = "ready" if found.get("after", 0) > found.get("before", 0) else "worse"
    else:
        return {}
    told = {name: value for name, value in found.items() if name in RefitState.model_fields}
    told |= {"status": status, "words": job.words, "share": job.share}
    return {**told, "certain": found.get("p_value", 1.0) < SURE}
