"""Bad calls of the Python API: each must raise an error that says what was wrong.

Learners follow scikit-learn, whose checks raise ValueError and TypeError; everything else raises
errors of resight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.fuzz import Case
from benchmarks.fuzz.material import DESCRIPTOR, Material
from benchmarks.fuzz.running import run_call

Calls = dict[str, Callable[[], Any]]
NAN = float("nan")
INF = float("inf")


def _gallery(m: Material) -> Calls:
    from resight import Gallery
    from resight.gallery import Described, Filter
    from resight.gallery.forgetting import forget
    from resight.gallery.log import Actor

    opened = Gallery.open(m("gallery"))
    a, b = opened.view.table.ids[:2].tolist()
    good = Described(m.features[:1], m.model.descriptor_fingerprint)
    opened.engine.close()  # every fork opens it for itself

    def tell(kind: Any, first: Any = a, second: Any = b, **more: Any) -> Callable[[], Any]:
        return lambda: Gallery.open(m("gallery")).teach(kind, first, second, **more)

    def search(query: Any = m.image, **more: Any) -> Callable[[], Any]:
        return lambda: Gallery.open(m("gallery")).search(query, **more)

    def add(given: Any = m.sightings, **more: Any) -> Callable[[], Any]:
        return lambda: Gallery.open(m("gallery")).add(given, **more)

    def create(place: Any = "new", model: Any = m.model, **more: Any) -> Callable[[], Any]:
        return lambda: Gallery.create(place, model, **more)

    def on(call: Callable[[Any], Any]) -> Callable[[], Any]:
        return lambda: call(Gallery.open(m("gallery")))

    return {
        "teach love": tell("love"),
        "teach nothing": tell(""),
        "teach None": tell(None),
        "teach itself": tell("same", a, a),
        "teach nobody": tell("same", a, "nobody"),
        "teach a number": tell("same", 1, 2),
        "teach None as sighting": tell("same", None, b),
        "name without a name": tell("name", a, "", person="  "),
        "name with a bell": tell("name", a, "", person="\x07"),
        "name turned round": tell("name", a, "", person="\u202eevil"),
        "name of half a character": tell("name", a, "", person="\udcff"),
        "name too long": tell("name", a, "", person="x" * 300),
        "name is a number": tell("name", a, "", person=7),
        "who with a line break": tell("same", a, b, by=Actor("me\nyou")),
        "undo nothing": tell("undo", "nothing", ""),
        "k=0": search(k=0),
        "k=-1": search(k=-1),
        "k=1.5": search(k=1.5),
        "k=nan": search(k=NAN),
        "k as text": search(k="3"),
        "k=True": search(k=True),
        "k huge": search(k=10**30),
        "a text as cameras": search(cameras="camera-1"),
        "a number as cameras": search(cameras=3),
        "an unknown camera": search(cameras=["nonsense"]),
        "a text as persons": search(persons="0001"),
        "None among persons": search(persons=[None]),
        "after nan": search(after=NAN),
        "after inf": search(after=INF),
        "after too late": search(after=1e300),
        "after as text": search(after="noon"),
        "after behind before": search(after=2.0, before=1.0),
        "unknown re-ranking": search(rerank="nonsense"),
        "query missing": search("missing.png"),
        "query is a folder": search(m("people")),
        "query is a device": search("/dev/zero"),
        "query is a pipe": search(m("pipe")),
        "query with a NUL": search("a\0b"),
        "query is a number": search(7),
        "query is None": search(None),
        "query of floats": search(np.zeros((64, 32, 3))),
        "query is grey": search(np.zeros((64, 32), np.uint8)),
        "query is empty": search(np.zeros((0, 0, 3), np.uint8)),
        "query of nan": search(Described(good.features * NAN, good.fingerprint)),
        "query of another width": search(Described(good.features[:, :5], good.fingerprint)),
        "query of another descriptor": search(Described(good.features, "nonsense")),
        "query of texts": search(Described(np.array([["a"]]), good.fingerprint)),  # type: ignore[arg-type]
        "query of lists": search(Described([[1, [2]]], good.fingerprint)),  # type: ignore[arg-type]
        "search_many of one text": on(lambda g: g.search_many("missing.png")),
        "search_like nobody": on(lambda g: g.search_like("nobody")),
        "search_like None": on(lambda g: g.search_like(None)),
        "batch_size=-1": add(batch_size=-1),
        "batch_size=0": add(batch_size=0),
        "batch_size=1.5": add(batch_size=1.5),
        "add a path": add(m("people")),
        "add None": add(None),
        "add with too few descriptors": add(described=good),
        "remove nobody": on(lambda g: g.remove(["nobody"])),
        "remove a text": on(lambda g: g.remove(a)),
        "image of nobody": on(lambda g: g.image("nobody")),
        "features of a text": on(lambda g: g.features(a)),
        "retain -1": on(lambda g: g.retain(-1)),
        "retain 0": on(lambda g: g.retain(0)),
        "retain inf": on(lambda g: g.retain(INF)),
        "retain nan": on(lambda g: g.retain(NAN)),
        "retain text": on(lambda g: g.retain("30")),
        "rebuild with batches of 0": on(lambda g: g.rebuild(m.model, batch_size=0)),
        "rebuild with text": on(lambda g: g.rebuild("model")),
        "forget nobody": on(lambda g: forget(g, "nobody")),
        "forget the unknown": on(lambda g: forget(g, "")),
        "create with retention inf": create(retention_days=INF),
        "create with unknown storage": create(descriptors="float8"),
        "create over a file": create(m("text.txt")),
        "create in a foreign folder": create(m("people")),
        "create with text as model": create(model="model"),
        "create with None": create(model=None),
        "create nowhere": create("ftp://host/x"),
        "create with a NUL": create("a\0b"),
        "open nothing": lambda: Gallery.open("nothing"),
        "open a pipe": lambda: Gallery.open(m("pipe")),
        "open None": lambda: Gallery.open(None),  # type: ignore[arg-type]
        "filter of a text": lambda: Filter(cameras="door"),  # type: ignore[arg-type]
        "filter of inf": lambda: Filter(after=INF),
    }


def _data(m: Material) -> Calls:
    import resight
    from resight import FeatureStore, Sightings

    paths, persons, cameras = ["a.png", "b.png"], ["1", "2"], ["x", "y"]

    def table(**changes: Any) -> Callable[[], Any]:
        columns: dict[str, Any] = {"paths": paths, "persons": persons, "cameras": cameras}
        return lambda: Sightings(**{**columns, **changes})

    def store(given: Any = m.sightings, descriptor: Any = DESCRIPTOR, **more: Any) -> Any:
        return lambda: FeatureStore("store").ensure(given, descriptor, **more)

    def evaluate(given: Any = m.sightings, **more: Any) -> Callable[[], Any]:
        options: dict[str, Any] = {"descriptor": DESCRIPTOR, "jobs": 1, **more}
        return lambda: resight.evaluate(given, **options)

    def fit(given: Any = m.sightings, **more: Any) -> Callable[[], Any]:
        options: dict[str, Any] = {"descriptor": DESCRIPTOR, "jobs": 1, **more}
        return lambda: resight.fit(given, **options)

    return {
        "too few persons": table(persons=["1"]),
        "a text as persons": table(persons="12"),
        "None among persons": table(persons=["1", None]),
        "nan among persons": table(persons=["1", NAN]),
        "persons in two columns": table(persons=[["1", "2"]]),
        "a bell in a camera": table(cameras=["x", "\x07"]),
        "a camera without a name": table(cameras=["x", ""]),
        "a path turned round": table(paths=["a.png", "\u202eb.png"]),
        "a path that is not UTF-8": table(paths=["a.png", "\udcff.png"]),
        "a person too long": table(persons=["1", "x" * 300]),
        "an unknown role": table(roles=["train", "nonsense"]),
        "a time of inf": table(times=[0, INF]),
        "a time of 1e300": table(times=[0, 1e300]),
        "times as text": table(times=["0", "noon"]),
        "a box of nan": table(boxes=[[0, 0, 1, 1], [0, 0, NAN, 1]]),
        "a box of nothing": table(boxes=[[0, 0, 1, 1], [0, 0, 0, 1]]),
        "a box of 30 digits": table(boxes=[[0, 0, 1, 1], [0, 0, 10**30, 1]]),
        "a box of three": table(boxes=[[0, 0, 1], [0, 0, 1]]),
        "boxes of text": table(boxes=[["a"] * 4] * 2),
        "replaced by bad times": lambda: replace(
            m.sightings, times=np.full(len(m.sightings), 1e300)
        ),
        "sightings of nothing": lambda: resight.sightings("nonsense"),
        "sightings of a pipe": lambda: resight.sightings(m("pipe.csv")),
        "sightings of None": lambda: resight.sightings(None),  # type: ignore[arg-type]
        "sightings of a NUL": lambda: resight.sightings("a\0b"),
        "a store that is a file": lambda: FeatureStore(m("text.txt")),
        "a store of a path": store(m("people")),
        "a store of nobody": store(m.sightings.select([])),
        "a store of nonsense": store(descriptor="nonsense"),
        "a store of nothing": store(descriptor=""),
        "a store of a number": store(descriptor=7),
        "a store with on_error": store(on_error="ignore"),
        "load nothing": lambda: resight.load("nothing"),
        "load a file": lambda: resight.load(m("text.txt")),
        "load None": lambda: resight.load(None),  # type: ignore[arg-type]
        "fit a path": fit(m("people")),
        "fit nobody": fit(m.sightings.select([])),
        "fit by nonsense": fit(learner="nonsense"),
        "fit with nonsense": fit(params={"nonsense": 1}),
        "fit with reg=nan": fit(params={"reg": NAN}),
        "fit with 0 jobs": fit(jobs=0),
        "fit with a million jobs": fit(jobs=1_000_000),
        "evaluate a path": evaluate(m("people")),
        "evaluate nothing": evaluate(None),
        "evaluate by nonsense": evaluate(learner="nonsense"),
        "evaluate by a number": evaluate(learner=7),
        "evaluate an unknown protocol": evaluate(protocol="nonsense"),
        "evaluate with missing splits": evaluate(splits="missing.json"),
        "evaluate vectors of a pipe": evaluate(None, features=m("pipe.npy")),
        "evaluate a curve of text": evaluate(curve=["ten"]),
        "cluster nowhere": lambda: resight.cluster("tcp://127.0.0.1:1", timeout=1),
        "cluster of nonsense": lambda: resight.cluster("nonsense", timeout=1),
    }


def _learners(m: Material) -> Calls:
    from resight import KXQDA, XQDA, BlockNormalizer

    X = m.features[:, :20].astype(float)
    y, c = m.sightings.persons, m.sightings.cameras
    worse = X.copy()
    worse[0, 0] = NAN

    def fit(made: Any, rows: Any = X, persons: Any = y, cameras: Any = c) -> Callable[[], Any]:
        return lambda: made.fit(rows, persons, cameras)

    fitted = XQDA().fit(X, y, c)
    return {
        "fit nan": fit(KXQDA(), worse),
        "fit inf": fit(XQDA(), np.full(X.shape, INF)),
        "fit texts": fit(XQDA(), np.full(X.shape, "a")),
        "fit one row": fit(XQDA(), X[:1], y[:1], c[:1]),
        "fit nothing": fit(XQDA(), X[:0], y[:0], c[:0]),
        "fit a vector": fit(XQDA(), X[0]),
        "fit complex": fit(XQDA(), X * 1j),
        "fit with too few persons": fit(XQDA(), X, y[:3]),
        "fit with too few cameras": fit(XQDA(), X, y, c[:3]),
        "fit without persons": fit(XQDA(), X, None),
        "fit persons of nan": fit(XQDA(), X, np.full(len(X), NAN)),
        "fit one person": fit(XQDA(), X, np.full(len(X), "1")),
        "fit one camera": fit(KXQDA(), X, y, np.full(len(X), "x")),
        "fit constant features": fit(KXQDA(), np.ones_like(X)),
        "fit reg=-1": fit(KXQDA(reg=-1)),
        "fit reg=nan": fit(KXQDA(reg=NAN)),
        "fit kernel nonsense": fit(KXQDA(kernel="nonsense")),
        "fit n_components=0": fit(KXQDA(n_components=0)),
        "fit chi2 of negative": fit(KXQDA(kernel="chi2"), -X - 1),
        "transform before fit": lambda: XQDA().transform(X),
        "transform another width": lambda: fitted.transform(X[:, :3]),
        "transform nan": lambda: fitted.transform(worse),
        "distances of texts": lambda: fitted.distances(X, "a"),
        "distances of None": lambda: fitted.distances(None, X),  # type: ignore[arg-type]
        "save over a file": lambda: fitted.save(m("text.txt")),
        "normalise by wrong blocks": lambda: BlockNormalizer([3, 3]).fit(X),
    }


def cases(m: Material) -> list[Case]:
    """Return all bad calls."""
    lists: Sequence[tuple[str, Calls, tuple[type[BaseException], ...]]] = (
        ("gallery", _gallery(m), ()),
        ("data", _data(m), ()),
        ("learners", _learners(m), (ValueError, TypeError)),
    )
    return [
        Case(
            "calls of the Python API",
            f"{where}: {name}",
            lambda call=call, allowed=allowed: run_call(call, allowed),  # type: ignore[misc]
        )
        for where, calls, allowed in lists
        for name, call in calls.items()
    ]
