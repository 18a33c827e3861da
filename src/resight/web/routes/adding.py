"""Adding images, folders, zips, tables and videos; the jobs of the gallery; keeping an upload."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, Response

from resight.errors import InputError
from resight.gallery.jobs import Job
from resight.gallery.spool import MAX_UPLOAD
from resight.times import parse, zone_of
from resight.web.answers import JobAnswer, JobsAnswer, Kept
from resight.web.uploading import FormToDisk
from resight.web.visiting import FieldError, Teacher, Teaching, Visit, lead_to

router = APIRouter()
_Text = Annotated[str, Form()]


@router.get("/add", response_class=HTMLResponse, include_in_schema=False)
def add_form(visit: Teacher) -> HTMLResponse:
    """Show the form to add sightings, and the jobs."""
    cameras = visit.site.gallery.view.cameras
    values = {"limit": MAX_UPLOAD >> 30, "cameras": cameras, "answer": jobs_json(visit)}
    return visit.page("add.html", **values)


@router.post("/add", response_model=JobAnswer, tags=["adding"])
async def add(request: Request, visit: Teacher) -> Response:
    """Add files (form fields `files`) in the background: images, folders, zip, CSV or video.

    `camera` names the camera of all of them, which a video needs; without, the folders do.
    """
    draft = await run_in_threadpool(visit.site.jobs.draft)
    form = FormToDisk(draft)
    try:
        await form.read(request)
        word = form.fields.get("csrf", "") or request.headers.get("x-csrf", "")
        visit.site.guard.check_change(request, word)
        job = await run_in_threadpool(_start, visit, form)
    except BaseException:
        await run_in_threadpool(draft.drop)
        raise
    return JSONResponse(_told(job)) if visit.wants_json else lead_to("/add")


def _start(visit: Visit, form: FormToDisk) -> Job:
    if not any(file.stat().st_size for file in form.files):
        raise InputError("no file chosen; choose images, a folder, a zip, a CSV table or a video")
    settings: dict[str, Any] = {"camera": form.fields.get("camera", "").strip()}
    if form.fields.get("start", "").strip():
        settings["start"] = _moment(visit, form.fields["start"], "start")
    return visit.site.jobs.start("add", visit.by, draft=form.draft, **settings)


@router.get("/jobs.json", response_model=JobsAnswer, tags=["adding"])
def jobs_json(visit: Teacher) -> JobsAnswer:
    """List the jobs of the gallery, newest first, with what failed and why."""
    listed = [JobAnswer(**_told(job)) for job in visit.site.jobs.list()]
    return JobsAnswer(jobs=listed, open=sum(job.state in ("queued", "running") for job in listed))


@router.post("/jobs/cancel", response_model=JobAnswer, tags=["adding"])
def cancel(visit: Teaching, key: _Text) -> Response:
    """Cancel a job; what it has stored stays."""
    job = visit.site.jobs.cancel(key, visit.by)
    return JSONResponse(_told(job)) if visit.wants_json else lead_to("/add")


@router.post("/keep", response_model=Kept, tags=["search"])
def keep(
    visit: Teaching,
    upload: Annotated[list[str], Form(description="keys returned by POST /upload")],
    camera: Annotated[str, Form(description="the camera that took them")],
    time: Annotated[str, Form(description="when; seconds or an ISO date")] = "",
) -> Response:
    """Store images that were uploaded for a search as sightings of the gallery."""
    moment = "" if not time.strip() else repr(_moment(visit, time, "time"))
    draft, table = visit.site.jobs.draft(), io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["path", "camera", "time"])
    try:
        for number, key in enumerate(upload):
            kept = visit.site.upload(visit.by.who, key)
            name = f"{number}-{kept.name.replace('/', '_')}"
            draft.write(name, [kept.image])
            writer.writerow([name, camera.strip(), moment])
        draft.write("sightings.csv", [table.getvalue().encode()])
        [sightings] = draft.sightings()
        added = visit.site.gallery.add(sightings)
    finally:
        draft.drop()
    if added.failures:
        raise InputError(str(added.failures[0].reason))
    ids = [*added.added, *added.already]
    visit.record("keep", query=ids)
    if visit.wants_json:
        return JSONResponse({"sightings": ids})
    return lead_to("/search?" + "&".join(f"like={key}" for key in ids))


def _moment(visit: Visit, text: str, field: str) -> float:
    try:
        return parse(text, zone_of(visit.zone))
    except InputError as error:
        raise FieldError(field, str(error)) from error


def _told(job: Job) -> dict[str, Any]:
    told = {**asdict(job), "who": job.by.get("who", "")}
    return JobAnswer.model_validate(told).model_dump()
