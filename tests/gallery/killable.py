"""What child processes do until they are killed: each step is told after it is acknowledged."""

from __future__ import annotations

from multiprocessing.connection import Connection

import toymodel

from resight.datasets.sightings import Sightings
from resight.gallery import Gallery
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
