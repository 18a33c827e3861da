"""The picture: one coloured strip for each band on both crops, the same in words and tables."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from resight import XQDA
from resight.explanation import Explainer
from resight.explanation.drawing import Picture, draw, draw_page, picture, strips

FIRST, SECOND = Picture("/a", 48, 128, "door"), Picture("/b", 64, 128, "<gate>")


@pytest.fixture
def explained(drawn: Any) -> Any:
    new = drawn.sightings.persons > "0020"
    explainer = Explainer(drawn.model, drawn.features[new], drawn.sightings.persons[new])
    return explainer.explain_features(drawn.features[drawn.pair("0031", "0035")]).to_dict()


def test_strips_are_blue_below_and_orange_above_the_usual(explained: Any) -> None:
    drawn_strips = strips(explained)
    for strip, band in zip(drawn_strips, explained["bands"], strict=True):
        assert strip.colour == ("#c2510a" if band["level"] > 1 else "#2166ac")
        assert 0 <= strip.opacity <= 0.45


def test_the_picture_is_well_formed_and_says_the_same_in_tables(explained: Any) -> None:
    text = draw(explained, FIRST, SECOND)
    svg = ElementTree.fromstring(re.findall(r"<svg class.*?</svg>", text, re.S)[0])
    assert len(svg.findall("image")) == 2
    assert len(svg.findall("rect")) == 3 * 8
    tops = [float(one.attrib["y"]) for one in svg.findall("rect")[:8]]
    assert tops == [20 + 32.0 * i for i in range(8)]
    assert explained["summary"] in svg.attrib["aria-label"]
    assert text.count('<th scope="row">') == 8 + len(explained["channels"])
    assert ">alike<" in text
    assert "&lt;gate&gt;" in text
    assert "<gate>" not in text
    assert "<script" not in text
    assert "style=" not in text  # the page's security policy allows no inline style


def test_the_page_stands_alone(explained: Any) -> None:
    image = np.random.default_rng(0).integers(0, 256, (300, 100, 3), dtype=np.uint8)
    page = draw_page(explained, picture(image, "one"), picture(image[:128], "two"))
    assert page.count("data:image/jpeg;base64,") == 2
    assert "http" not in page


def test_without_a_usual_strips_are_coloured_by_size(drawn: Any) -> None:
    explainer = Explainer(drawn.fitted(XQDA()))
    found = explainer.explain_features(drawn.features[drawn.pair("0031")]).to_dict()
    largest = int(np.argmax([band["contribution"] for band in found["bands"]]))
    assert strips(found)[largest].opacity == 0.45
    assert ">alike<" not in draw(found, FIRST, SECOND)


def test_words_name_what_is_alike_and_more_percent_is_more_alike(explained: Any) -> None:
    assert re.match(r"\d+% alike \(two people: usually 50%\)", explained["summary"])
    assert re.search(
        r"(very|less) alike: (head|upper-body|leg|feet) (colour|texture|edges) \(\d+%\)",
        explained["summary"],
    )
    order = sorted(
        zip(strips(explained), explained["bands"], strict=True), key=lambda s: s[1]["level"]
    )
    shown = [float(strip.text.rstrip("%")) for strip, _ in order]
    assert shown == sorted(shown, reverse=True)
