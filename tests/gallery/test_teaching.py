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
from resight.descriptors import descriptor
from resight.errors import InputError
from resight.gallery import Gallery
from resight.gallery.proposing import propose
from resight.gallery.teaching import adopt, fit_like, labelled, rank1_hits, refit
from resight.learners import _landmarks
from resight.models.model import Model


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


def test_a_setting_that_was_chosen_is_kept_and_teaching_helps(
    drawn: tuple[Sightings, np.ndarray], tmp_path: Path
) -> None:
    auto = AutoKXQDA(blocks=[descriptor("whos-star").blocks], n_repeats=1)
    gallery, truth = settled(tmp_path / "gallery", drawn[0], learned(drawn, auto, normalize=False))
    for a, b in pairs_of(truth)[:20]:
        gallery.teach("same", a, b)
    candidate = refit(gallery)
    assert isinstance(candidate.model.learner, AutoKXQDA)
    assert candidate.model.learner.setting_ == auto.setting_
    assert candidate.model.normalizer is None  # it normalises inside
    assert candidate.uncalibrated is None
    assert candidate.after > candidate.before
    adopt(gallery, candidate)
    gallery.close()
    again = Gallery.open(tmp_path / "gallery")
    assert refit(again).before == candidate.after  # an adopted one is fitted again alike
    again.close()


def test_a_model_of_landmarks_is_refitted_exactly_while_labels_are_few(
    drawn: tuple[Sightings, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    through = KXQDA(width=2.0, reg=1e-3, reg_form="relative", landmarks=70)
    model = learned(drawn, through, normalize=True, last="0040")
    gallery, truth = settled(tmp_path / "gallery", drawn[0], model)
    for a, b in pairs_of(truth)[:20]:
        gallery.teach("same", a, b)
    learner = refit(gallery).model.learner  # from 60 sightings
    assert learner.solver_ != "landmarks"
    assert learner.get_params() == through.get_params() | {"landmarks": None}

    examples = labelled(gallery)
    gallery.close()
    few = learned(drawn, KXQDA(landmarks=20), normalize=True)
    monkeypatch.setattr(_landmarks, "EXACT_LIMIT", 59)
    assert fit_like(few, examples).learner.solver_ == "landmarks"


def test_a_learner_that_had_raw_descriptors_gives_way_to_one_that_has_not(
    drawn: tuple[Sightings, np.ndarray], town: tuple[Gallery, dict[str, str]]
) -> None:
    raw = learned(drawn, XQDA(), normalize=False)
    model = fit_like(raw, labelled(town[0]))
    assert isinstance(model.learner, KXQDA)
    assert model.normalizer is not None


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
