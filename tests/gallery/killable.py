"""What child processes do until they are killed: each step is told after it is acknowledged."""

from __future__ import annotations

import warnings
from multiprocessing.connection import Connection

import toymodel

from resight.datasets.sightings import Sightings
from resight.gallery import Gallery


def add(uri: str, sightings: Sightings, said: Connection) -> None:
    """Add in batches of three, sending the ids of each batch once it is stored."""
    warnings.simplefilter("ignore")  # of lancedb, about being forked
    gallery = Gallery.open(uri)
    said.send(None)
    gallery.add(sightings, batch_size=3, on_batch=said.send)
    said.send("done")


def rebuild(uri: str, seed: int, said: Connection) -> None:
    """Change the model again and again, sending each fingerprint once it is in use."""
    warnings.simplefilter("ignore")
    gallery = Gallery.open(uri)
    said.send(None)
    for step in range(100):
        model = toymodel.StripeModel(seed=seed + step, width=6)
        gallery.rebuild(model)
        said.send(model.fingerprint)
