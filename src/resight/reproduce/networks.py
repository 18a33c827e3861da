"""What labels bring on top of a network: its tables, with a star, since it saw other people before.

Everything below is fixed before any image is measured: descriptors, learners, numbers of people.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

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


def measure_network(
    network: Network, bench: Bench, protocols: tuple[tuple[str, str], ...] = PROTOCOLS
) -> Iterator[dict[str, Any]]:
    """Measure a network on the datasets; yield the document, as it grows, after each comparison."""
    own, every = (str(network.file),), (str(network.file), *HAND_MADE)
    tables: list[dict[str, Any]] = []
    told = {"name": network.name, "digest": network.digest_, **network.preprocessing_}
    for dataset, protocol in protocols:
        tables.append({"dataset": dataset, "protocol": protocol, "curve": []})
        most, tested = _people(bench, dataset, protocol)
        cosine = _cosine(network, bench, dataset, protocol)
        rows = {COSINE: cosine}
        for title, plan in (("XQDA", Plan("xqda")), ("k-XQDA", Plan("kxqda"))):
            rows[f"network, {title}"] = bench.measure(Job(dataset, protocol, own, plan))
        for people in (None, *(n for n in PEOPLE if n < most)):
            job = Job(dataset, protocol, HAND_MADE, RECIPE, people)
            hand, together = bench.measure(job), bench.measure(replace(job, descriptors=every))
            if people is None:
                rows |= {HAND: hand, ALL: together}
                tables[-1]["rows"] = [
                    {"method": name, "star": name != HAND, "summary": figures["summary"]}
                    for name, figures in rows.items()
                ]
            point = _compared(cosine, hand, together, tested / (tested + most))
            tables[-1]["curve"].append({"people": people or most, **point})
            yield {"schema": SCHEMA, "network": told, "tables": tables}


def _people(bench: Bench, dataset: str, protocol: str) -> tuple[int, int]:
    """Return how many people a protocol trains on at most, and how many it tests."""
    sightings = bench.sightings(dataset)
    splits, people = for_dataset(sightings, protocol).splits, sightings.persons
    learned = (len(seen_by_two(people[s.train], sightings.cameras[s.train])) for s in splits)
    return min(learned), len(np.unique(people[splits[0].query]))


def _cosine(network: Network, bench: Bench, dataset: str, name: str) -> dict[str, Any]:
    """Rank by the angle between a network's vectors: nothing is learned, not even a mean."""
    sightings = bench.sightings(dataset)
    protocol = for_dataset(sightings, name)
    features = bench.features(dataset, str(network.file), False).features
    vectors = features / np.linalg.norm(features.astype(np.float64), axis=1, keepdims=True)
    trials = []
    for split in protocol.splits:
        rows = vectors[split.test]
        rankings = rank_directions(sightings, protocol, split, lookup(2.0 - 2.0 * rows @ rows.T))
        trials.append(Trial(rankings, {}, 0.0).figures())
    ranks = [{"rank1": 100.0 * trial["ranks"]["rank1"]} for trial in trials]
    return {"summary": summary_of(trials), "trials": ranks}


def _compared(
    cosine: dict[str, Any], hand: dict[str, Any], every: dict[str, Any], test_fraction: float
) -> dict[str, Any]:
    """Compare the recipe over everything with the better of what one would do without it."""
    rank1 = [one["summary"]["rank1"]["mean"] for one in (cosine, hand, every)]
    over, better = ("cosine", cosine) if rank1[0] >= rank1[1] else ("hand-made", hand)
    own, other = ([trial["rank1"] for trial in one["trials"]] for one in (every, better))
    gain = compare_paired(own, other, test_fraction)
    point = dict(zip(("cosine", "hand_made", "together"), rank1, strict=True))
    return {**point, "gain": {"over": over, **vars(gain)}}


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
