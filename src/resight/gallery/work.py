"""What jobs of each kind do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from resight.gallery.groups import group
from resight.gallery.jobs import Running
from resight.gallery.teaching import adopt, keep_candidate, kept_candidate, refit

_LISTED = 1000  # failures whose reasons are kept


def _add(run: Running) -> dict[str, Any]:
    """Add what was uploaded; after a kill, what is stored already is passed over."""
    settings = {**run.job.settings}
    draft, camera = run.jobs.upload(run.job), settings.pop("camera", "")
    settings.pop("upload")
    run.step("reading the upload", 0.0)
    parts = draft.sightings(
        camera, on_frame=lambda n: run.tell(words="cutting people out"), **settings
    )
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
    """Fit a model on the answers, measure what it gains, and keep or use it."""
    candidate = refit(run.gallery, run.step)
    keep_candidate(run.gallery.engine, candidate)
    if run.job.settings.get("adopt") and candidate.better:
        return {**candidate.figures, **_rebuild(run)}
    words = candidate.words + ("" if candidate.better else ", so it was kept")
    return {**candidate.figures, "adopted": False, "words": words}


def _rebuild(run: Running) -> dict[str, Any]:
    """Use the model that "improve" found."""
    candidate = kept_candidate(run.gallery.engine)
    gain = {"before": candidate.before, "after": candidate.after}
    adopt(run.gallery, candidate, run.step)
    run.gallery.record(run.by, "model adopted", gain=gain)
    words = f"{candidate.words}; it is now in use"
    if candidate.uncalibrated is not None:
        words += f", without probabilities: {candidate.uncalibrated}"
    return {**gain, "adopted": True, "words": words}


def _group(run: Running) -> dict[str, Any]:
    """Group the unknown sightings."""
    found = group(run.gallery, run.step)
    n = len(found.groups)
    return {"groups": n, "words": f"{n:,} groups of unknown sightings"}


WORK: dict[str, Callable[[Running], dict[str, Any]]] = {
    "add": _add,
    "improve": _improve,
    "rebuild": _rebuild,
    "group": _group,
}
