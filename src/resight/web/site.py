"""What one running server knows: the gallery, its guard, uploads in memory and the refit."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from resight.errors import StoreError
from resight.explanation import Explainer
from resight.gallery import Described, Gallery
from resight.gallery.crops import MAX_PIXELS, check, keep
from resight.gallery.forgetting import expire
from resight.gallery.references import gallery_explainer
from resight.images import read
from resight.validation import check_name
from resight.web.refitting import RefitJob
from resight.web.security import Guard

_KEPT_UPLOADS = 32
_EXPIRY_EVERY = 3600.0


@dataclass(frozen=True)
class Upload:
    """A query image that somebody sent: kept in memory only, until newer ones push it out."""

    name: str
    image: bytes
    described: Described


@dataclass
class Site:
    """Shared by all requests."""

    gallery: Gallery
    guard: Guard
    job: RefitJob = field(init=False)
    _uploads: OrderedDict[str, Upload] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _expired_at: float = 0.0
    _explainer: tuple[str, Explainer] | None = None

    def __post_init__(self) -> None:
        self.job = RefitJob(self.gallery)

    def keep_upload(self, name: str, content: bytes) -> str:
        """Check and describe an uploaded image; return the key under which it can be searched."""
        check_name(name, "file name")
        picture = read(content, name, MAX_PIXELS)
        check(picture, name)
        stored, picture = keep(content, picture, None)
        upload = Upload(name, stored, self.gallery.describe([picture]))
        key = secrets.token_urlsafe(9)
        with self._lock:
            self._uploads[key] = upload
            while len(self._uploads) > _KEPT_UPLOADS:
                self._uploads.popitem(last=False)
        return key

    def upload(self, key: str) -> Upload | None:
        """Return an upload that is still in memory."""
        with self._lock:
            return self._uploads.get(key)

    def explainer(self) -> Explainer:
        """Explain with the model in use; what is usual in the gallery is found once for each."""
        model = self.gallery.view.manifest.current.fingerprint
        kept = self._explainer
        if kept is None or kept[0] != model:
            kept = self._explainer = model, gallery_explainer(self.gallery)
        return kept[1]

    def log(
        self,
        who: str,
        what: str,
        *query: str,
        persons: Sequence[str] = (),
        conditions: dict[str, Any] | None = None,
    ) -> None:
        """Note who did what in the gallery's access log.

        Sightings (`query`) and persons are texts of their own in it, so that erasing finds them.
        """
        entry = {"when": time.time(), "who": who, "what": what, "query": [*query, *persons]}
        entry |= {"conditions": conditions} if conditions else {}
        sightings = [text for text in query if not text.startswith("upload ")]
        self.gallery.log(entry, sightings, [*persons, *(conditions or {}).get("person", ())])

    def accesses(self, limit: int = 200) -> list[dict[str, Any]]:
        """Return the latest entries of the access log, newest first."""
        latest = self.gallery.engine.read("access", last=limit)[::-1]
        return [json.loads(text) for _, text in latest]

    def expire_sometimes(self) -> None:
        """Remove sightings past their retention, at first and then once an hour.

        What another process began to erase and did not finish is finished, too.
        """
        now = time.time()
        with self._lock:
            due = now - self._expired_at > _EXPIRY_EVERY
            if due:
                self._expired_at = now
        if due:
            try:
                expire(self.gallery)
            except StoreError as error:  # it is begun and shown; the next hour finishes it
                logging.getLogger(__name__).warning("removing old sightings: %s", error)
