"""What one running server knows: the gallery, its guard, uploads in memory and the refit."""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from resight.errors import StoreError
from resight.explanation import Explainer
from resight.gallery import Described, Gallery
from resight.gallery.crops import MAX_PIXELS, check, keep
from resight.gallery.forgetting import expire
from resight.gallery.jobs import Jobs
from resight.gallery.log import operator
from resight.images import read
from resight.validation import check_name
from resight.web.batches import RequestBatches
from resight.web.security import Guard, RefusedError

_KEPT_UPLOADS = 32
_EXPIRY_EVERY = 3600.0
_SEEN = 100_000  # sightings remembered for each user


@dataclass(frozen=True)
class Upload:
    """A query image that somebody sent: kept in memory only, until newer ones push it out."""

    who: str
    name: str
    image: bytes
    described: Described
    digest: str


class Site:
    """Shared by all requests."""

    def __init__(self, gallery: Gallery, guard: Guard, spool: Path | None = None) -> None:
        self.gallery, self.guard = gallery, guard
        self.jobs, self.batches = Jobs(gallery, spool), RequestBatches(gallery)
        self._uploads: OrderedDict[str, Upload] = OrderedDict()
        self._seen: dict[str, set[str]] = {}
        self._lock = threading.Lock()
        self._expired_at = 0.0
        self._explainer: tuple[str, Explainer] | None = None

    def keep_upload(self, who: str, name: str, content: bytes) -> tuple[str, str]:
        """Check and describe an uploaded image; return its key for searches and its digest."""
        check_name(name, "file name")
        picture = read(content, name, MAX_PIXELS)
        check(picture, name, self.gallery.standing)
        stored, picture = keep(content, picture, None)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        upload = Upload(who, name, stored, self.gallery.describe([picture]), digest)
        key = secrets.token_urlsafe(9)
        with self._lock:
            self._uploads[key] = upload
            while len(self._uploads) > _KEPT_UPLOADS:
                self._uploads.popitem(last=False)
        return key, digest

    def upload(self, who: str, key: str) -> Upload:
        """Return somebody's own upload while it is in memory."""
        with self._lock:
            kept = self._uploads.get(key)
        if kept is None or kept.who != who:
            raise RefusedError(404, "this upload has expired; upload the image again")
        return kept

    def explainer(self) -> Explainer:
        """Explain with the model in use; what is usual in the gallery is found once for each."""
        model = self.gallery.view.manifest.current.fingerprint
        kept = self._explainer
        if kept is None or kept[0] != model:
            kept = self._explainer = model, self.gallery.explainer()
        return kept[1]

    def has_seen(self, who: str, sightings: Sequence[str]) -> None:
        """Remember that the log says these were shown to somebody, whose pictures follow."""
        with self._lock:
            seen = self._seen.setdefault(who, set())
            if len(seen) > _SEEN:
                seen.clear()
            seen.update(sightings)

    def was_shown(self, who: str, sighting: str) -> bool:
        """Whether the log says already that a sighting was shown to somebody."""
        with self._lock:
            return sighting in self._seen.get(who, ())

    def expire_sometimes(self) -> None:
        """Remove what is past its retention, and finish what was begun to be erased, every hour."""
        now = time.time()
        with self._lock:
            due = now - self._expired_at > _EXPIRY_EVERY
            if due:
                self._expired_at = now
        if due:
            try:
                expire(self.gallery, by=operator("server"))
            except StoreError as error:  # it is begun and shown; the next hour finishes it
                logging.getLogger(__name__).warning("removing old sightings: %s", error)
