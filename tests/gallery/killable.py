"""What child processes do until they are killed: each step is told after it is acknowledged."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import toymodel

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.gallery import Gallery
from resight.gallery.forgetting import forget
from resight.gallery.log import operator
from resight.workers.executors import local


def add(uri: str, sightings: Sightings, said: Connection) -> None:
    """Add in batches of three, sending the ids of each batch once it is stored."""
    gallery = Gallery.open(uri)
    said.send(None)
    gallery.add(sightings, batch_size=3, on_batch=said.send)
    said.send("done")


def rebuild(uri: str, seed: int, said: Connection) -> None:
    """Change the model again and again, sending each fingerprint once it is in use."""
    gallery = Gallery.open(uri)
    said.send(None)
    for step in range(100):
        model = toymodel.StripeModel(seed=seed + step, width=6)
        gallery.rebuild(model)
        said.send(model.fingerprint)


def add_by_processes(uri: str, sightings: Sightings, batch: int, said: Connection) -> None:
    """Add through two processes, sending the ids of each batch once it is stored."""
    with local(2) as workers:
        Gallery.open(uri).add(sightings, batch_size=batch, executor=workers, on_batch=said.send)


def rebuild_once(uri: str, model: toymodel.CountedModel, batch: int, said: Connection) -> None:
    """Put one model in use, sending the share that is done after each batch."""
    gallery = Gallery.open(uri)
    said.send(None)
    gallery.rebuild(model, batch_size=batch, on_step=said.send)
    said.send("done")


def answer(
    uri: str, kind: Any, pairs: list[tuple[str, str]], barrier: Any, said: Connection
) -> None:
    """Answer each pair at the moment the other process does, sending what was accepted."""
    gallery = Gallery.open(uri)
    accepted = []
    for a, b in pairs:
        _ = gallery.view
        barrier.wait()
        try:
            gallery.teach(kind, a, b)
            accepted.append(True)
        except InputError:
            accepted.append(False)
    said.send(accepted)


def write(uri: str, people: Sightings, number: int, stop: Any, said: Connection) -> None:
    """Add the unlabelled again and again at new times, sending the ids that were acknowledged."""
    gallery, ids, step = Gallery.open(uri), [], 0
    some = people.select(people.persons == "").select(np.arange(4))
    try:
        while not stop.is_set():
            step += 1
            times = np.full(4, 1000.0 * (number + 1) + step)
            ids += gallery.add(replace(some, times=times), batch_size=2).added
            if step == 1:
                said.send(None)
    except Exception as error:
        said.send((repr(error), ids))
    else:
        said.send((None, ids))


def search(uri: str, people: Sightings, number: int, stop: Any, said: Connection) -> None:
    """Search like the page does, with the log; a sighting may be erased meanwhile."""
    gallery, done = Gallery.open(uri), 0
    said.send(None)
    try:
        while not stop.is_set():
            ids = gallery.view.table.ids
            like = str(ids[done % len(ids)])
            with suppress(InputError):  # it was erased a moment ago
                gallery.search_like(like, 5)
                gallery.record(operator(), "search", query=[like])
            done += 1
    except Exception as error:
        said.send((repr(error), []))
    else:
        said.send((None, []))


def forget_each(uri: str, said: Connection) -> None:
    """Forget one person after the other, sending each name once nothing is left."""
    gallery = Gallery.open(uri)
    said.send(None)
    for person in ("0001", "0002", "0003", "0004"):
        forget(gallery, person)
        said.send(person)
    said.send("done")


def run_jobs(uri: str, folder: str) -> None:
    """Run the jobs of a gallery, one after the other."""
    from resight.gallery import jobs

    jobs.LEASE, jobs.BEAT, jobs.POLL = 1.0, 0.05, 0.05
    jobs.Worker(jobs.Jobs(Gallery.open(uri), Path(folder))).run()
