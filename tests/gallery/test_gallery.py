from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.gallery import Described, Filter, Gallery
from resight.gallery.checking import check, measure_recall
from resight.gallery.manifest import NAME, Manifest


def brute_force(gallery: Gallery, query: np.ndarray, allowed: np.ndarray) -> list[str]:
    """The definition: all distances in float64, ordered, ties by place."""
    E = gallery.view.index.embeddings.astype(float)
    D = ((E - gallery.model.embed(query[None]).astype(np.float32).astype(float)) ** 2).sum(axis=1)
    order = np.argsort(D, kind="stable")
    return [str(gallery.view.table.ids[row]) for row in order if allowed[row]]


def test_add_keeps_everything_and_twice_is_once(gallery: Gallery, people: Sightings) -> None:
    assert len(gallery) == len(people) == 36
    again = gallery.add(people)
    assert (again.added, again.failures, len(again.already)) == ([], [], 36)
    table = gallery.view.table
    assert sorted(table.times[~np.isnan(table.times)]) == sorted(
        people.times[~np.isnan(people.times)]
    )
    sighting = str(table.ids[table.times == 1050.0][0])
    assert gallery.image(sighting) == people.files()[5].read_bytes()


def test_reopened_gallery_answers_the_same(gallery: Gallery, people: Sightings) -> None:
    before = gallery.search(people.files()[3], k=36, same_pictures=True)
    after = Gallery.open(gallery.uri).search(str(people.files()[3]), k=100, same_pictures=True)
    assert before == after
    assert len(after) == 36  # k larger than the gallery
    assert after[0].distance == 0.0
    assert after[0].same_picture
    assert after[1].probability is None  # the model is not calibrated


@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"cameras": ["camera-2"]},
        {"exclude_cameras": ["camera-1", "camera-3"]},
        {"after": 1100.0, "before": 1200.0},
        {"cameras": ["camera-3"], "after": 1300.0},
        {"persons": ["0003", "0005"]},
        {"before": 1000.0},
    ],
)
def test_search_with_conditions_is_the_definition(
    gallery: Gallery, people: Sightings, conditions: dict[str, Any]
) -> None:
    table = gallery.view.table
    where = Filter(**{k: tuple(v) if isinstance(v, list) else v for k, v in conditions.items()})
    allowed = where.mask(table.cameras, table.times, gallery.view.persons)
    query = gallery.describe([np.full((128, 64, 3), 90, np.uint8)]).features[0]
    for k in (1, 4, 36):
        hits = gallery.search(Described(query[None], "stripes-1"), k, **conditions)
        assert [hit.id for hit in hits] == brute_force(gallery, query, allowed)[:k]
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))


@pytest.mark.parametrize("indexed", [False, True])
def test_search_by_the_engine_gives_the_same_order(
    gallery: Gallery, people: Sightings, indexed: bool
) -> None:
    """Too large for memory: candidates of the engine, scored again in float64."""
    large = Gallery.open(gallery.uri, memory_limit=0)
    if indexed and large.engine.approximate:
        large.build_index()
    elif indexed:
        with pytest.raises(InputError, match="no approximate index"):
            large.build_index()
        assert "exact, read from the disk" in large.info()["search"]
    assert large.view.index is None
    for conditions in ({}, {"cameras": ["camera-2"], "before": 1200.0}, {"persons": ["0002"]}):
        for file in people.files()[::9]:
            exact = gallery.search(file, k=5, **conditions)
            found = large.search(file, k=5, **conditions)
            assert [hit.id for hit in found] == [hit.id for hit in exact]
            assert np.allclose([h.distance for h in found], [h.distance for h in exact], rtol=1e-5)
    assert measure_recall(large) == 1.0


def test_embeddings_may_be_as_wide_as_descriptors_side_by_side(
    uri: str, people: Sightings, model: Callable[..., Any]
) -> None:
    """A model that learned nothing has them; pgvector's own type ends at 16,000 numbers."""
    Gallery.create(uri, model(width=60_000)).add(people)
    wide = Gallery.open(uri)
    query = wide.describe([np.full((128, 64, 3), 90, np.uint8)]).features[0]
    nearest = brute_force(wide, query, np.ones(len(people), bool))[:4]
    for opened in (wide, Gallery.open(uri, memory_limit=0)):
        hits = opened.search(Described(query[None], "stripes-1"), 4)
        assert [hit.id for hit in hits] == nearest
    assert check(uri).clean


def test_both_engines_agree(
    tmp_path: Path, postgres: str, people: Sightings, model: Callable[..., Any]
) -> None:
    answers = []
    for uri in (str(tmp_path / "sqlite"), f"{postgres}#agree"):
        gallery = Gallery.create(uri, model())
        gallery.add(people)
        answers.append(
            [gallery.search(f, 10, exclude_cameras=["camera-1"]) for f in people.files()]
        )
    assert answers[0] == answers[1]


def test_shards_together_find_what_one_gallery_finds(
    uri: str, gallery: Gallery, people: Sightings, model: Callable[..., Any]
) -> None:
    """Several galleries of one model, here several names in one database or folder."""
    shards = []
    for camera in ("camera-1", "camera-2", "camera-3"):
        shards.append(Gallery.create(f"{uri}_{camera[-1]}", model()))
        shards[-1].add(people.select(people.cameras == camera))
    for file in people.files()[::5]:
        found = (hit for shard in shards for hit in shard.search(file, k=7))
        nearest = sorted(found, key=lambda hit: hit.distance)[:7]
        expected = gallery.search(file, k=7)
        assert [(h.id, h.distance) for h in nearest] == [(h.id, h.distance) for h in expected]


def test_search_like_a_stored_sighting_leaves_it_out(gallery: Gallery) -> None:
    sighting = str(gallery.view.table.ids[0])
    hits = gallery.search_like(sighting, k=100)
    assert len(hits) == 35
    assert sighting not in {hit.id for hit in hits}
    own = Filter(persons=(str(gallery.view.persons[0]),))
    for memory in (0, 10**9):  # also where the engine searches
        hits = Gallery.open(gallery.uri, memory_limit=memory).search_like(sighting, 100, own)
        assert len(hits) == 2
        assert sighting not in {hit.id for hit in hits}
    with pytest.raises(InputError, match="no sighting 'nobody'"):
        gallery.search_like("nobody")


def test_remove(gallery: Gallery) -> None:
    ids = gallery.view.table.ids[:5].tolist()
    assert gallery.remove(ids) == 5
    assert len(gallery) == 31
    assert len(Gallery.open(gallery.uri).search_like(str(gallery.view.table.ids[0]), 100)) == 30
    with pytest.raises(InputError, match="nothing was removed"):
        gallery.remove([str(gallery.view.table.ids[0]), ids[0]])
    assert check(gallery.uri).clean


def test_rebuild_embeds_from_descriptors_and_can_be_undone(
    gallery: Gallery, people: Sightings, model: Callable[..., Any]
) -> None:
    before = gallery.search(people.files()[0], k=36)
    shares: list[float] = []
    gallery.rebuild(model(seed=1, width=5), on_step=shares.append)
    changed = gallery.search(people.files()[0], k=36)
    assert shares[-1] == 1.0
    assert [h.id for h in changed] != [h.id for h in before]
    fresh = Gallery.open(gallery.uri)
    assert fresh.model.fingerprint == "stripe-model-1-5"
    expected = fresh.model.embed(fresh.describe([np.asarray(_picture(people, 7))]).features)
    row = fresh.view.rows[_id_of(fresh, "camera-1", 1070.0)]
    assert np.allclose(fresh.view.index.embeddings[row], expected[0], atol=1e-6)
    gallery.undo_rebuild()
    assert gallery.search(people.files()[0], k=36) == before
    assert fresh.search(people.files()[0], k=36) == before  # another process sees it too
    with pytest.raises(InputError, match="no earlier model"):
        gallery.undo_rebuild()


def test_sightings_added_during_a_rebuild_are_found_afterwards(
    gallery: Gallery, people: Sightings, model: Callable[..., Any], tmp_path: Path
) -> None:
    other = Gallery.open(gallery.uri)
    late = replace(people.select([0, 1]), times=np.array([7.0, 8.0]))

    def add_meanwhile(share: float) -> None:
        other.add(late)

    gallery.rebuild(model(seed=2, width=6), on_step=add_meanwhile)
    assert len(gallery.search(people.files()[0], k=100, same_pictures=True)) == 38
    other.undo_rebuild()
    assert len(gallery.search(people.files()[0], k=100, same_pictures=True)) == 38
    assert check(gallery.uri).clean


def test_going_back_keeps_rules_that_another_process_changes_meanwhile(
    gallery: Gallery, model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery.rebuild(model(seed=1, width=5))
    other, begin = Gallery.open(gallery.uri), gallery.engine.transaction

    def late() -> Any:
        monkeypatch.undo()
        other.require(asks_purpose=True)
        return begin()

    monkeypatch.setattr(gallery.engine, "transaction", late)
    gallery.undo_rebuild()
    assert other.view.manifest.asks_purpose
    assert len(other.view.manifest.history) == 1


def test_only_the_last_models_are_kept(gallery: Gallery, model: Callable[..., Any]) -> None:
    for seed in range(1, 5):
        gallery.rebuild(model(seed=seed, width=4))
    history = Manifest.read(gallery.engine).history
    assert [g.fingerprint for g in history] == [f"stripe-model-{s}" for s in ("0-8", "3-4", "4-4")]
    assert gallery.engine.generations() == [g.number for g in history]


def test_unreadable_files_are_reported_and_the_rest_is_added(
    uri: str, people: Sightings, model: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "text.jpg").write_text("no image")
    (tmp_path / "half.png").write_bytes(people.files()[0].read_bytes()[:500])
    good = str(people.files()[0])
    paths = np.array([str(tmp_path / "text.jpg"), good, str(tmp_path / "half.png"), "missing.png"])
    mixed = Sightings(paths, np.full(4, ""), np.full(4, "door"))
    result = Gallery.create(uri, model()).add(mixed)
    assert len(result.added) == 1
    assert [Path(failure.path).name for failure in result.failures] == [
        "text.jpg",
        "half.png",
        "missing.png",
    ]
    for failure, words in zip(
        result.failures, ("not an image", "damaged", "cannot read"), strict=True
    ):
        assert words in failure.reason


def test_boxes_are_cut_out(uri: str, people: Sightings, model: Callable[..., Any]) -> None:
    box = np.array([[10, 20, 30, 60]])
    one = replace(people.select([0]), boxes=box)
    gallery = Gallery.create(uri, model())
    [sighting] = gallery.add(one).added
    from resight.images import read

    assert np.array_equal(read(gallery.image(sighting)), _picture(people, 0)[20:80, 10:40])


def test_descriptors_of_another_model_are_refused(gallery: Gallery, people: Sightings) -> None:
    features = gallery.features(gallery.view.table.ids[:1].tolist()).features
    with pytest.raises(InputError, match="computed by other-2, those of the gallery by stripes-1"):
        gallery.search(Described(features, "other-2"))
    with pytest.raises(InputError, match="shape"):
        gallery.search(Described(features[:, :5], "stripes-1"))
    with pytest.raises(InputError, match="NaN"):
        gallery.search(Described(features * np.nan, "stripes-1"))
    given = Described(np.zeros((36, 48), np.float32), "other-2")
    with pytest.raises(InputError, match="other-2"):
        gallery.add(people, described=given)


def test_a_model_on_other_descriptors_is_refused(
    gallery: Gallery, model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = model(seed=3)
    monkeypatch.setattr(type(foreign), "descriptor_fingerprint", "stripes-2")
    with pytest.raises(InputError, match="uses descriptors stripes-2"):
        gallery.rebuild(foreign)
    with pytest.raises(StoreError, match="not comparable"):
        len(Gallery.open(gallery.uri))
    assert not check(gallery.uri).clean


def test_precomputed_descriptors_are_taken(
    uri: str, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(uri, model())
    pictures = [_picture(people, row) for row in range(len(people))]
    gallery.add(people, described=gallery.describe(pictures))
    [nearest] = gallery.search(people.files()[4], 1, same_pictures=True)
    assert nearest.distance == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "damaged"),
        (b'{"schema": "resight.gallery/9"}', "resight.gallery/9"),
        (b'{"schema": "resight.gallery/1", "resight": "0", "history": [{}]}', "damaged"),
    ],
)
def test_foreign_or_damaged_manifests_are_refused(
    gallery: Gallery, content: bytes, words: str
) -> None:
    gallery.engine.put({NAME: content})
    with pytest.raises(StoreError, match=words):
        Gallery.open(gallery.uri)
    assert not check(gallery.uri).clean


def test_nothing_there_or_something_else_there(
    uri: str, tmp_path: Path, model: Callable[..., Any]
) -> None:
    with pytest.raises(StoreError, match="no gallery at"):
        Gallery.open(uri)
    Gallery.create(uri, model())
    with pytest.raises(StoreError, match="already"):
        Gallery.create(uri, model())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="is not a gallery"):
        Gallery.create(tmp_path / "mine", model())
    with pytest.raises(InputError, match="cannot keep a gallery at 'mysql://x'"):
        Gallery.open("mysql://x")


def test_an_empty_gallery_finds_nothing(
    uri: str, people: Sightings, model: Callable[..., Any]
) -> None:
    gallery = Gallery.create(uri, model())
    assert gallery.search(people.files()[0]) == []
    assert gallery.info()["sightings"] == 0
    assert check(uri).clean


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"k": 0}, "at least 1"),
        ({"k": 1.5}, "whole number"),
        ({"persons": "0001"}, "give a list"),
        ({"after": float("nan")}, "1900 and 9999"),
        ({"cameras": ["camera-9"]}, "did you mean 'camera-"),
        ({"after": 2.0, "before": 1.0}, "later than"),
        ({"cameras": ["camera-1"], "exclude_cameras": ["camera-1"]}, "both selected"),
    ],
)
def test_bad_questions(
    gallery: Gallery, people: Sightings, conditions: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        gallery.search(people.files()[0], **conditions)


def test_bad_calls_are_refused_and_change_nothing(gallery: Gallery, people: Sightings) -> None:
    a, b = gallery.view.table.ids[:2].tolist()
    calls: dict[str, Callable[[], Any]] = {
        "unknown kind of answer 'love'": lambda: gallery.teach("love", a, b),  # type: ignore[arg-type]
        "control character": lambda: gallery.teach("name", a, person="\x07"),
        "direction mark": lambda: gallery.teach("name", a, person="\u202ebob"),
        "batch_size=-1": lambda: gallery.add(people, batch_size=-1),
        "give sightings": lambda: gallery.add("people"),  # type: ignore[arg-type]
        "retention=inf": lambda: gallery.retain(float("inf")),
        "give a list": lambda: gallery.remove(a),
        "fitted model": lambda: gallery.rebuild("model"),  # type: ignore[arg-type]
        "must be a NumPy array": lambda: gallery.search(7),  # type: ignore[arg-type]
    }
    before = gallery.info()
    for words, call in calls.items():
        with pytest.raises(InputError, match=words):
            call()
    assert gallery.info() == before
    assert gallery.view.labels.active == []


def test_two_threads_adding_at_once(uri: str, people: Sightings, model: Callable[..., Any]) -> None:
    Gallery.create(uri, model())
    halves = [np.arange(0, 24), np.arange(12, 36)]  # they overlap
    errors: list[BaseException] = []

    def add(rows: np.ndarray) -> None:
        try:
            Gallery.open(uri).add(people.select(rows), batch_size=3)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=add, args=(rows,)) for rows in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(Gallery.open(uri)) == 36
    report = check(uri)
    assert report.clean, report.problems


def test_a_new_label_does_not_read_everything_again(gallery: Gallery) -> None:
    other = Gallery.open(gallery.uri)
    before = gallery.view
    unknown = before.table.ids[before.persons == ""].tolist()
    other.teach("same", unknown[0], unknown[1])
    after = gallery.view
    assert after.labels.person(unknown[0]) == after.labels.person(unknown[1]) != ""
    assert (after.persons != "").sum() == (before.persons != "").sum() + 2
    assert after.index is before.index


def test_info_is_plain_data(gallery: Gallery) -> None:
    info = json.loads(json.dumps(gallery.info()))
    assert info["cameras"] == {"camera-1": 12, "camera-2": 12, "camera-3": 12}
    assert (info["persons"], info["labelled"]) == (6, 18)
    assert info["times"] == [1000.0, 1340.0]


def _picture(people: Sightings, row: int) -> np.ndarray:
    from resight.images import read

    return read(people.files()[row].read_bytes())


def _id_of(gallery: Gallery, camera: str, time: float) -> str:
    table = gallery.view.table
    return str(table.ids[(table.cameras == camera) & (table.times == time)][0])
