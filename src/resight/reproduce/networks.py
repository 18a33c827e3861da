"""What labels bring on top of a network: its tables, with a star, since it saw other people before.

Everything below is fixed before any image is measured: descriptors, learners, numbers of people.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from resight.datasets.sightings import seen_by_two
from resight.descriptors import Network
from resight.evaluation.statistics import compare_paired
from resight.experiments.results import summary_of
from resight.experiments.tables import HEADINGS, markdown_table, summary_cells
from resight.experiments.trials import Trial, rank_directions
from resight.plans import Plan
from resight.protocols import for_dataset
from resight.registry import AUTO
from resight.reproduce.measuring import Bench
from resight.reproduce.page import rendered
from resight.reproduce.paper import Job
from resight.tuning.gram import lookup

SCHEMA = "resight.networks/1"
HAND_MADE = ("gog", "lomo-dagger", "whos-dagger")
PEOPLE = (10, 25, 50, 100, 200)
RECIPE = Plan(AUTO, "auto", {"mirrored": True})
# Small ones first: what is finished is shown while the rest is measured.
PROTOCOLS = (
    ("grid", "grid"),
    ("prid2011", "prid2011"),
    ("prid450s", "prid450s"),
    ("cuhk01", "cuhk01-single-shot"),
    ("cuhk01", "cuhk01-multi-shot"),
)
COSINE, HAND, ALL = "network, cosine", "hand-made, recipe", "network + hand-made, recipe"


class Place(NamedTuple):
    """A protocol, how many people it trains on at most, and which share of people it tests."""

    dataset: str
    protocol: str
    people: int
    test_fraction: float


def measure_network(
    network: Network, bench: Bench, protocols: tuple[tuple[str, str], ...] = PROTOCOLS
) -> Iterator[dict[str, Any]]:
    """Measure a network on the datasets; yield the document, as it grows, after each comparison.

    Finished runs are kept by the bench.
    """
    own, every = (str(network.file),), (str(network.file), *HAND_MADE)
    tables: list[dict[str, Any]] = []
    told = {"name": network.name, "digest": network.digest_, **network.preprocessing_}
    for place in (_place(bench, *one) for one in protocols):
        tables.append({"dataset": place.dataset, "protocol": place.protocol, "curve": []})
        cosine = _cosine(network, bench, place)
        rows = {COSINE: cosine}
        for title, plan in (("XQDA", Plan("xqda")), ("k-XQDA", Plan("kxqda"))):
            job = Job(place.dataset, place.protocol, own, plan)
            rows[f"network, {title}"] = bench.measure(job)
        for people in (None, *(n for n in PEOPLE if n < place.people)):
            job = Job(place.dataset, place.protocol, HAND_MADE, RECIPE, people)
            hand, together = bench.measure(job), bench.measure(replace(job, descriptors=every))
            if people is None:
                rows |= {HAND: hand, ALL: together}
                tables[-1]["rows"] = [
                    {"method": name, "star": name != HAND, "summary": figures["summary"]}
                    for name, figures in rows.items()
                ]
            point = _point(people or place.people, cosine, hand, together, place)
            tables[-1]["curve"].append(point)
            yield {"schema": SCHEMA, "network": told, "tables": tables}


def _place(bench: Bench, dataset: str, protocol: str) -> Place:
    sightings = bench.sightings(dataset)
    splits = for_dataset(sightings, protocol).splits
    people, cameras = sightings.persons, sightings.cameras
    learned = min(len(seen_by_two(people[one.train], cameras[one.train])) for one in splits)
    tested = len(np.unique(people[splits[0].query]))
    return Place(dataset, protocol, learned, tested / (tested + learned))


def _cosine(network: Network, bench: Bench, place: Place) -> dict[str, Any]:
    """Rank by the angle between a network's vectors: nothing is learned, not even a mean."""
    sightings = bench.sightings(place.dataset)
    protocol = for_dataset(sightings, place.protocol)
    features = bench.features(place.dataset, str(network.file), False).features
    vectors = features / np.linalg.norm(features.astype(np.float64), axis=1, keepdims=True)
    trials = []
    for split in protocol.splits:
        rows = vectors[split.test]
        between = lookup(2.0 - 2.0 * rows @ rows.T)
        rankings = rank_directions(sightings, protocol, split, between)
        trials.append(Trial(rankings, {}, 0.0).figures())
    ranks = [{"rank1": 100.0 * trial["ranks"]["rank1"]} for trial in trials]
    return {"summary": summary_of(trials), "trials": ranks}


def _point(
    people: int, cosine: dict[str, Any], hand: dict[str, Any], every: dict[str, Any], place: Place
) -> dict[str, Any]:
    """Compare the recipe over everything with the better of what one would do without it."""
    rank1 = [one["summary"]["rank1"]["mean"] for one in (cosine, hand, every)]
    over, better = ("cosine", cosine) if rank1[0] >= rank1[1] else ("hand-made", hand)
    own, other = ([trial["rank1"] for trial in one["trials"]] for one in (every, better))
    gain = compare_paired(own, other, place.test_fraction)
    point = dict(zip(("cosine", "hand_made", "together"), rank1, strict=True))
    return {"people": people, **point, "gain": {"over": over, **vars(gain)}}


def page_of(document: dict[str, Any]) -> str:
    """Return the page of a `resight.networks/1` document."""
    told = {"network": document["network"], "tables": document["tables"], "hand_made": HAND_MADE}
    return rendered("networks.md", **told, grid=_table, curve=_curve)


def _table(table: dict[str, Any]) -> str:
    rows = [
        [row["method"] + (" *" if row["star"] else ""), *summary_cells(row["summary"])]
        for row in table["rows"]
    ]
    return markdown_table(("method", *HEADINGS), rows)


def _curve(table: dict[str, Any]) -> str:
    headings = ("labelled people", f"{HAND}", f"{ALL} *", "gain over the better", "95% interval")
    rows = [["0", "", f"{table['curve'][0]['cosine']:.1f} (cosine)", "", ""]]
    for point in sorted(table["curve"], key=lambda point: point["people"]):
        gain, (low, high) = point["gain"], point["gain"]["ci95"]
        reached = (f"{point[name]:.1f}" for name in ("hand_made", "together"))
        compared = f"{gain['mean_difference']:+.1f} ({gain['over']})"
        rows.append([str(point["people"]), *reached, compared, f"{low:+.1f} to {high:+.1f}"])
    return markdown_table(headings, rows)
