"""Jobs: adding images, folders, zips, tables and videos; a better model, and the way back."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from python_multipart import create_form_parser
from python_multipart.exceptions import FormParserError

from resight.errors import InputError
from resight.gallery.jobs import Job, Jobs
from resight.gallery.manifest import CANDIDATE, models
from resight.gallery.spool import MAX_UPLOAD, Draft
from resight.gallery.teaching import SURE, why_not
from resight.times import parse, zone_of
from resight.web.answers import JobAnswer, JobsAnswer, Kept, RefitState
from resight.web.visiting import Administering, FieldError, Teacher, Teaching, Viewer, Visit, twins

router = APIRouter()
_IN_MEMORY = 2**20  # bytes of a file above which it goes to the disk while it comes


@router.get("/add", response_class=HTMLResponse, include_in_schema=False)
def add_form(visit: Teacher) -> HTMLResponse:
    """Show the form to add sightings, and the jobs."""
    cameras, limit = visit.site.gallery.view.cameras, MAX_UPLOAD >> 30
    return visit.page("add.html", answer=jobs_json(visit), cameras=cameras, limit=limit)


@router.post("/jobs/add", response_model=JobAnswer, tags=["jobs"])
async def add(request: Request, visit: Teacher) -> Any:
    """Add files (form fields `file`) in the background: images, folders, zip, CSV or video.

    `camera` names the camera of all of them, which a video needs; without, the folders do.
    """
    draft = await run_in_threadpool(visit.site.jobs.draft)
    try:
        fields = await _read_form(request, draft)
        word = fields.get("csrf", "") or request.headers.get("x-csrf", "")
        visit.site.guard.check_change(request, word)
        job = await run_in_threadpool(_start, visit, draft, fields)
    except BaseException:
        await run_in_threadpool(draft.drop)
        raise
    return _told(visit, job)


async def _read_form(request: Request, draft: Draft) -> dict[str, str]:
    """Stream the files of a form into a draft, never into memory; return its other fields."""
    fields: dict[str, str] = {}

    def on_field(field: Any) -> None:
        fields[field.field_name.decode("utf-8", "replace")] = (field.value or b"").decode()

    def on_file(file: Any) -> None:
        name = (file.file_name or b"").decode("utf-8", "replace")
        if name and file.in_memory:
            draft.write(name, [file.file_object.getvalue()])
        elif name:
            os.replace(os.fsdecode(file.actual_file_name), draft.write(name, ()))
        file.close()

    config = {
        "UPLOAD_DIR": str(draft.folder),
        "UPLOAD_DELETE_TMP": False,  # it is moved to its place
        "MAX_MEMORY_FILE_SIZE": _IN_MEMORY,
        "MAX_FIELD_SIZE": 10_000,
    }
    headers = {"Content-Type": request.headers.get("content-type", "none").encode("latin-1")}
    try:
        parser = create_form_parser(headers, on_field, on_file, config=config)
        async for chunk in request.stream():
            await run_in_threadpool(parser.write, chunk)
        await run_in_threadpool(parser.finalize)
    except (FormParserError, UnicodeDecodeError) as error:
        raise InputError("the upload contained no file, or is damaged; try again") from error
    return fields


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
    listed = [JobAnswer.model_validate(job) for job in visit.site.jobs.list()]
    return JobsAnswer(jobs=listed, open=sum(job.state in ("queued", "running") for job in listed))


@router.get("/jobs/{key}.json", response_model=JobAnswer, tags=["jobs"])
def job_json(visit: Viewer, key: str) -> JobAnswer:
    """Return one job."""
    return JobAnswer.model_validate(visit.site.jobs.get(key))


@router.post("/jobs/{key}/cancel", response_model=JobAnswer, tags=["jobs"])
def cancel(visit: Teaching, key: str) -> Any:
    """Cancel a job; what it has stored stays."""
    return _told(visit, visit.site.jobs.cancel(key, visit.by))


@router.post("/jobs/{kind}", response_model=JobAnswer, tags=["jobs"])
def start(visit: Administering, kind: Literal["improve", "rebuild", "group"]) -> Any:
    """Train a new model and measure it, use the one that was trained, or group the unknowns."""
    return _told(visit, visit.site.jobs.start(kind, visit.by))


@router.post("/keep", response_model=Kept, tags=["search"])
def keep(
    visit: Teaching,
    upload: Annotated[list[str], Form(description="keys returned by POST /upload")],
    camera: Annotated[str, Form(description="the camera that took them")],
    time: Annotated[str, Form(description="when; seconds or an ISO date")] = "",
) -> Any:
    """Store images that were uploaded for a search as sightings of the gallery."""
    moment = "" if not time.strip() else repr(_moment(visit, time, "time"))
    draft, table = visit.site.jobs.draft(), io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["path", "person", "camera", "time"])
    try:
        for number, key in enumerate(upload):
            kept = visit.site.upload(visit.by.who, key)
            name = f"{number}-{kept.name.replace('/', '_')}"
            draft.write(name, [kept.image])
            writer.writerow([name, "", camera.strip(), moment])
        draft.write("sightings.csv", [table.getvalue().encode()])
        [sightings] = draft.sightings()
        added = visit.site.gallery.add(sightings)
    finally:
        draft.drop()
    if added.failures:
        raise InputError(str(added.failures[0].reason))
    ids = [*added.added, *added.already]
    visit.record("keep", query=ids)
    address = "/search?" + "&".join(f"like={key}" for key in ids)
    return visit.done(Kept(sightings=ids), address)


def _moment(visit: Visit, text: str, field: str) -> float:
    try:
        return parse(text, zone_of(visit.zone))
    except InputError as error:
        raise FieldError(field, str(error)) from error


def _told(visit: Visit, job: Job) -> Any:
    place = "/refit" if job.kind in ("improve", "rebuild") else "/add"
    return visit.done(JobAnswer.model_validate(job), place)


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
