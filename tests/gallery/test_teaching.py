"""Learning from what was taught, with the real model on synthetic cameras."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from resight import KXQDA
from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError
from resight.gallery import Gallery
from resight.gallery.proposing import propose
from resight.gallery.teaching import adopt, labelled, rank1_hits, refit
from resight.model import Model


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> tuple[Gallery, dict[str, str]]:
    """Forty people before two cameras, ten labelled; and who is really who."""
    folder = tmp_path_factory.mktemp("town")
    drawn = draw_cameras(folder / "cameras", n_people=40, n_cameras=2, seed=8)
    known = drawn.persons <= "0010"
    model = Model(("whos-star",), KXQDA())
    features = model.describe(drawn.files())
    model.fit(features[known], drawn.persons[known], drawn.cameras[known])
    gallery = Gallery.create(folder / "gallery", model)
    times = np.arange(len(drawn), dtype=float)
    gallery.add(replace(drawn, persons=np.where(known, drawn.persons, ""), times=times))
    table = gallery.view.table
    persons = drawn.persons[table.times.astype(int)].tolist()
    return gallery, dict(zip(table.ids.tolist(), persons, strict=True))


def pairs_of(truth: dict[str, str]) -> list[tuple[str, str]]:
    people: dict[str, list[str]] = {}
    for sighting, person in truth.items():
        people.setdefault(person, []).append(sighting)
    return [(ids[0], ids[1]) for person, ids in sorted(people.items()) if person > "0010"]


def test_teaching_many_people_helps_people_who_were_not_taught(
    town: tuple[Gallery, dict[str, str]],
) -> None:
    gallery, truth = town
    with pytest.raises(InputError, match="at least 2 people across two cameras first; so far 0"):
        refit(gallery)
    for a, b in pairs_of(truth)[:20]:
        gallery.teach("same", a, b)
    steps: list[float] = []
    candidate = refit(gallery, lambda words, share: steps.append(share))
    assert steps == sorted(steps)
    assert steps[-1] == 1.0
    assert (candidate.people, candidate.queries) == (20, 40)
    assert candidate.after > candidate.before  # measured on people held out
    assert gallery.view.manifest.current.origin == "create"  # nothing has changed yet

    examples = labelled(gallery)
    others = [key for pair in pairs_of(truth)[20:] for key in pair]
    view = gallery.view
    asked = replace(
        examples,
        ids=others,
        features=gallery.features(others).features,
        persons=np.array([truth[key] for key in others]),
        cameras=view.table.cameras[[view.rows[key] for key in others]],
    )
    unseen = set(asked.persons.tolist())
    old = np.mean(rank1_hits(view.model, asked, unseen))
    adopt(gallery, candidate)
    assert gallery.view.manifest.current.origin == "refit"
    assert np.mean(rank1_hits(gallery.model, asked, unseen)) > old
    gallery.undo_rebuild()


def test_rank1_is_the_definition(town: tuple[Gallery, dict[str, str]]) -> None:
    gallery, _ = town
    examples = labelled(gallery)
    people = set(examples.persons.tolist()[:7])
    hits = rank1_hits(gallery.model, examples, people)
    D = gallery.model.distances(examples.features, examples.features)
    expected = []
    for i, person in enumerate(examples.persons):
        others = [j for j in range(len(D)) if examples.cameras[j] != examples.cameras[i]]
        if person in people and any(examples.persons[j] == person for j in others):
            best = min(others, key=lambda j: D[i, j])
            expected.append(bool(examples.persons[best] == person))
    assert hits == expected


def test_proposals_are_unknown_and_farthest_from_a_match(
    town: tuple[Gallery, dict[str, str]],
) -> None:
    gallery, _ = town
    view = gallery.view
    proposed = propose(view, 5)
    assert len(proposed) == 5
    assert all(not view.labels.person(key) for key in proposed)
    E, cameras = view.index.embeddings.astype(float), view.table.cameras
    nearest = {}
    for row in np.flatnonzero(view.persons == ""):
        D = ((E - E[row]) ** 2).sum(axis=1)
        nearest[str(view.table.ids[row])] = D[cameras != cameras[row]].min()
    assert proposed == sorted(nearest, key=lambda key: -nearest[key])[:5]


def test_an_empty_gallery_proposes_nothing(
    tmp_path: Path, town: tuple[Gallery, dict[str, str]]
) -> None:
    assert propose(Gallery.create(tmp_path / "empty", town[0].model).view, 5) == []
