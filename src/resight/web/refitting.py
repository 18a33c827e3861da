"""The refit that runs behind the page: one at a time, watched, adopted only when it is done."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel

from resight.errors import ResightError
from resight.gallery import Gallery
from resight.gallery.history import models
from resight.gallery.log import Actor, operator
from resight.gallery.teaching import Candidate, adopt, refit, why_not

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
    """Runs `refit` in a thread, and `adopt` if the result is not worse."""

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery
        self._lock = threading.Lock()
        self._state = RefitState()
        self._candidate: Candidate | None = None
        self._thread: threading.Thread | None = None
        self._by = operator("server")

    def state(self) -> RefitState:
        """Return where it is, what is missing to start, and whether there is a way back."""
        view = self._gallery.view
        can_undo = view.manifest.current.origin == "refit"
        known = models(self._gallery.engine, view.manifest)
        facts = {"missing": why_not(view), "can_undo": can_undo, "models": known}
        return self._state.model_copy(update=facts)

    def start(self, by: Actor) -> None:
        """Start a refit unless one is running."""
        self._launch(self._refit, by)

    def adopt_anyway(self, by: Actor) -> None:
        """Use a refitted model although it found fewer."""
        if self._candidate is not None:
            self._launch(partial(self._adopt, self._candidate), by)

    def undo(self) -> None:
        """Go back to the model before the last refit."""
        self._gallery.undo_rebuild()
        self._state = RefitState(status="undone", words="went back to the earlier model")

    def wait(self) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None:
            self._thread.join()

    def _launch(self, work: Callable[[], None], by: Actor) -> None:
        with self._lock:
            if self._state.status == "running":
                return
            self._by = by
            self._state = RefitState(status="running", words="starting")
            self._thread = threading.Thread(target=self._guarded, args=(work,), daemon=True)
            self._thread.start()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except ResightError as error:
            self._state = RefitState(status="failed", words=str(error))
        except Exception:
            logging.getLogger(__name__).exception("refit failed")
            words = "retraining failed; the current model is unchanged"
            self._state = RefitState(status="failed", words=words)

    def _update(self, **changes: Any) -> None:
        self._state = self._state.model_copy(update=changes)

    def _step(self, words: str, share: float) -> None:
        self._update(words=words, share=share)

    def _refit(self) -> None:
        self._candidate = candidate = refit(self._gallery, self._step)
        gain = ("before", "after", "queries", "people")
        self._update(**{name: getattr(candidate, name) for name in gain})
        if candidate.better:
            self._adopt(candidate)
        else:
            self._update(status="worse", words=f"{candidate.words}, so it was kept")

    def _adopt(self, candidate: Candidate) -> None:
        gain = {"before": candidate.before, "after": candidate.after}
        self._update(status="running", **gain)
        adopt(self._gallery, candidate, self._step)
        self._gallery.record(self._by, "model adopted", gain=gain)
        words = f"{candidate.words}; it is now in use"
        if candidate.uncalibrated is not None:
            words += f", without probabilities: {candidate.uncalibrated}"
        self._candidate = None
        self._update(status="done", words=words, share=1.0)
