"""Explanations of drawn people: sums, references, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from resight import KXQDA, XQDA
from resight.errors import InputError
from resight.explanation import Explainer
from resight.explanation.attribution import EXACT, INTEGRATED, LEFT_OUT
from resight.explanation.explanation import _WORDS
from resight.explanation.parts import OCCLUSION
from resight.models.model import Model


def test_parts_bands_and_channels_add_up_to_the_distance(drawn: Any) -> None:
    files = drawn.sightings.files()
    pair = drawn.pair("0030")
    found = Explainer(drawn.model).explain(*(files[row] for row in pair))
    own = drawn.model.distances(*(drawn.features[[row]] for row in pair))[0, 0]
    assert found.distance == pytest.approx(own)
    assert found.method == "integrated gradients"
    for shares in (found.bands, found.channels):
        assert sum(one.contribution for one in shares) == pytest.approx(own, rel=1e-6)
        assert sum(one.share for one in shares) == pytest.approx(1.0, rel=1e-6)
    assert abs(found.remainder) < 1e-6 * own


def test_linear_models_are_exact_for_images_too(drawn: Any) -> None:
    for learner in (XQDA(), KXQDA(kernel="linear")):
        found = Explainer(drawn.fitted(learner)).explain_features(
            drawn.features[drawn.pair("0031", "0032")]
        )
        assert found.method == "exact"
        assert abs(found.remainder) < 1e-6 * found.distance


def test_every_method_is_told_in_words() -> None:
    assert set(_WORDS) == {EXACT, INTEGRATED, LEFT_OUT, OCCLUSION}


def test_with_nothing_to_compare_there_is_no_verdict(drawn: Any) -> None:
    found = Explainer(drawn.fitted(XQDA())).explain_features(drawn.features[drawn.pair("0031")])
    assert found.usual is None
    assert (found.to_dict()["compared"], found.to_dict()["usual_pairs"]) == ("", 0)
    assert {band.level for band in found.bands} == {None}
    assert {band.verdict for band in found.bands} == {""}
    assert "% of the distance comes from the strip at" in found.summary


def test_references_that_were_learned_from_are_left_out(drawn: Any) -> None:
    persons = drawn.sightings.persons
    new = persons > "0020"

    def usual(rows: Any) -> Any:
        return Explainer(drawn.model, drawn.features[rows], persons[rows]).usual

    mixed, fresh = usual(new | True), usual(new)
    np.testing.assert_allclose(mixed, fresh)
    assert usual(~new) is None  # a metric holds people that it learned from farther apart


def test_one_person_is_more_alike_than_two(drawn: Any) -> None:
    new = drawn.sightings.persons > "0020"
    explainer = Explainer(drawn.model, drawn.features[new], drawn.sightings.persons[new])

    def levels(offset: int) -> list[Any]:
        people = [f"{n:04d}" for n in range(21, 41)]
        pairs = zip(people, people[offset:] + people[:offset], strict=True)
        rows = [drawn.features[drawn.pair(*pair)] for pair in pairs]
        return [explainer.explain_features(row).whole.level for row in rows]

    same, different = np.median(levels(0)), np.median(levels(1))
    assert same < 0.75
    assert 0.6 < different < 1.6  # what is usual is usual
    assert same < different


def test_what_differs_is_found(drawn: Any) -> None:
    """Painting the legs of one crop changes the strips of the legs, and colours most."""
    from resight.images import read

    new = drawn.sightings.persons > "0020"
    explainer = Explainer(drawn.model, drawn.features[new], drawn.sightings.persons[new])
    image = read(drawn.sightings.files()[drawn.pair("0033")[0]])
    painted = image.copy()
    painted[len(image) * 5 // 8 :] = (200, 30, 30)
    found = explainer.explain(image, painted)
    contributions = np.array([band.contribution for band in found.bands])
    assert contributions[:4].sum() < 0.05 * contributions.sum()
    assert contributions[5:].sum() > 0.7 * contributions.sum()


def test_a_sighting_and_itself(drawn: Any) -> None:
    row = drawn.pair("0033")[0]
    found = Explainer(drawn.model, drawn.features, drawn.sightings.persons).explain_features(
        drawn.features[[row, row]]
    )
    assert found.distance == pytest.approx(0.0, abs=1e-9)
    assert {band.verdict for band in found.bands} == {"alike"}
    assert {band.share for band in found.bands} == {0.0}


def test_it_is_plain_data(drawn: Any) -> None:
    found = Explainer(drawn.model).explain_features(drawn.features[drawn.pair("0033")])
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["schema"] == "resight.explanation/1"
    assert sum(part["contribution"] for part in told["parts"]) == pytest.approx(told["distance"])
    assert told["parts"][0]["rows"] == [0.0, 0.25]
    assert told["method"] == "integrated gradients"


def test_a_learner_that_is_misread_is_left_opaque(drawn: Any) -> None:
    model = drawn.fitted(KXQDA())
    model.learner._distances = lambda Q, G: 2.0 * KXQDA._distances(model.learner, Q, G)
    found = Explainer(model).explain_features(drawn.features[drawn.pair("0033")])
    assert found.method == "leave part out"


def test_what_cannot_be_explained(drawn: Any, tmp_path: Any) -> None:
    vectors = Model((), KXQDA()).fit(drawn.features, drawn.sightings.persons, None)
    with pytest.raises(InputError, match="cannot explain images"):
        Explainer(vectors)
    (tmp_path / "text.png").write_text("hello")
    file = drawn.sightings.files()[0]
    with pytest.raises(InputError, match="not an image"):
        Explainer(drawn.model).explain(tmp_path / "text.png", file)
    with pytest.raises(InputError, match="two rows of 2960"):
        Explainer(drawn.model).explain_features(drawn.features[:3])
