"""Learning from what was taught, with the real model on synthetic cameras."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight import KXQDA, XQDA, AutoKXQDA
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError
from resight.gallery import Gallery
from resight.gallery.groups import propose
from resight.gallery.teaching import (
    Candidate,
    adopt,
    fit_like,
    fit_recipe,
    labelled,
    rank1_hits,
    refit,
)
from resight.models.model import Model
from resight.plans import budget_for


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sightings, np.ndarray]:
    """Forty people before two cameras, and their descriptors."""
    sightings = draw_cameras(tmp_path_factory.mktemp("cameras"), n_people=40, n_cameras=2, seed=8)
    return sightings, Model(("whos-star",), KXQDA()).describe(sightings.files())


@pytest.fixture(scope="module")
def town(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[Sightings, np.ndarray]
) -> tuple[Gallery, dict[str, str]]:
    """A gallery of all of them with a model from the ten that are labelled; who is really who."""
    model = learned(drawn, KXQDA(), normalize=True)
    return settled(tmp_path_factory.mktemp("town") / "gallery", drawn[0], model)


def learned(
    drawn: tuple[Sightings, np.ndarray], learner: Any, *, normalize: bool, last: str = "0010"
) -> Model:
    sightings, features = drawn
    known = sightings.persons <= last
    model = Model(("whos-star",), learner, normalize=normalize)
    return model.fit(features[known], sightings.persons[known], sightings.cameras[known])


def settled(folder: Path, drawn: Sightings, model: Model) -> tuple[Gallery, dict[str, str]]:
    gallery = Gallery.create(folder, model)
    known = drawn.persons <= "0010"
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
    with pytest.raises(
        InputError, match="at least 2 people across two cameras first; so far there are 0"
    ):
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
    asked = examples._replace(
        ids=np.array(others),
        features=gallery.features(others).features,
        persons=np.array([truth[key] for key in others]),
        cameras=view.table.cameras[[view.rows[key] for key in others]],
    )
    unseen = set(asked.persons.tolist())
    old = rank1(view.model, asked, unseen)
    adopt(gallery, candidate)
    assert gallery.view.manifest.current.origin == "refit"
    assert rank1(gallery.model, asked, unseen) > old
    first, second = gallery.info()["models"]
    assert (first["origin"], first["state"]) == ("create", "used before")
    assert (second["origin"], second["state"]) == ("refit", "in use")
    assert (second["before"], second["after"]) == (candidate.before, candidate.after)
    gallery.undo_rebuild()
    assert [one["state"] for one in gallery.info()["models"]] == ["in use", "used before"]


def rank1(model: Any, examples: Any, people: set[str]) -> float:
    return float(np.mean(np.concatenate(list(rank1_hits(model, examples, people).values()))))


def test_the_recipe_makes_the_new_model_whatever_the_old_one_is(
    drawn: tuple[Sightings, np.ndarray], tmp_path: Path
) -> None:
    raw = learned(drawn, XQDA(), normalize=False)
    gallery, truth = settled(tmp_path / "gallery", drawn[0], raw)
    for a, b in pairs_of(truth)[:4]:
        gallery.teach("same", a, b)
    candidate = refit(gallery)
    examples = labelled(gallery)
    made, why = fit_recipe(raw, examples, budget_for(14) / 5)
    assert isinstance(candidate.model.learner, AutoKXQDA)
    assert candidate.model.learner.setting_ == made.learner.setting_
    assert (candidate.why, candidate.queries) == (why, 8)
    (told,) = [one for one in gallery.info()["models"] if one["origin"] == "refit"]
    assert (told["state"], told["why"]) == ("not used", why)
    again = fit_like(candidate.model, examples)
    assert again.learner.setting_ == made.learner.setting_
    gallery.close()


@pytest.mark.parametrize(("after", "p_value"), [(90.0, 0.01), (90.0, 0.3), (80.0, 1.0)])
def test_what_is_gained_is_said_honestly(after: float, p_value: float) -> None:
    told = Candidate(None, [], 80.0, after, (-1.0, 2.0), 12, 6, p_value)
    assert told.better == (after > 80.0)
    assert ("nothing to gain yet" in told.words) == (not told.better)
    assert ("may be chance" in told.words) == (told.better and p_value > 0.05)


def test_rank1_is_the_definition(town: tuple[Gallery, dict[str, str]]) -> None:
    gallery, _ = town
    examples = labelled(gallery)
    people = set(examples.persons.tolist()[:7])
    hits = rank1_hits(gallery.model, examples, people)
    D = gallery.model.distances(examples.features, examples.features)
    expected: dict[str, list[bool]] = {}
    for i, person in enumerate(examples.persons):
        others = [j for j in range(len(D)) if examples.cameras[j] != examples.cameras[i]]
        if person in people and any(examples.persons[j] == person for j in others):
            best = min(others, key=lambda j: D[i, j])
            expected.setdefault(person, []).append(bool(examples.persons[best] == person))
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
