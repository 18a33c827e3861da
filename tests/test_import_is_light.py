"""``import resight`` and ``resight --help`` must not wait for heavy libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest

import resight

HEAVY = (
    "sklearn",
    "scipy",
    "matplotlib",
    "numba",
    "cv2",
    "PIL",
    "lancedb",
    "pyarrow",
    "fastapi",
    "typer",
    "distributed",
    "joblib",
)


def loaded_by(code: str) -> list[str]:
    """Heavy libraries that a fresh process has loaded after running `code`."""
    probe = f"{code}\nimport sys\nprint('loaded:', *[m for m in {HEAVY} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=120
    )
    return result.stdout.rsplit("loaded:", 1)[1].split()


@pytest.mark.parametrize(
    "code",
    [
        "import resight; resight.__version__; dir(resight)",
        "from resight.cli import main; main(['--help'])",
        "from resight.cli import main; main(['--version'])",
        "from resight.cli import main; main(['no-such-verb'])",
        "import resight.__main__",
    ],
)
def test_nothing_heavy_is_imported(code):
    assert loaded_by(code) == []


@pytest.mark.parametrize("verb", ["extract", "gallery", "search", "evaluate", "fit", "demo"])
def test_the_help_of_a_verb_needs_no_heavy_library_either(verb):
    code = f"from resight.cli import main; assert main(['{verb}', '--help']) == 0"
    assert set(loaded_by(code)) <= {"typer"}


def test_a_gallery_is_imported_without_the_numerical_libraries():
    """They cost seconds of processor, which `gallery info` or a page's start do not need."""
    assert set(loaded_by("import resight.gallery, resight.gallery.forgetting")) <= {"cv2", "PIL"}


def test_what_is_promised_exists():
    assert set(resight.__all__) <= set(dir(resight))
    for name in resight.__all__:
        assert getattr(resight, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'KXQDAA'"):
        _ = resight.KXQDAA


NOT_FOR_A_SEARCH = (
    "sklearn",
    "scipy.optimize",
    "scipy.stats",
    "pandas",
    "joblib",
    "matplotlib",
    "rich",
    "onnxruntime",
    "lancedb",
    "distributed",
    "fastapi",
    "jinja2",
    "resight.learners._base",
    "resight.tuning.search",
    "resight.features.store",
)


@pytest.mark.parametrize("learner", ["kxqda", "auto"])
def test_a_search_loads_neither_learners_nor_what_trains_them(learner, tmp_path):
    """They take longer to import than a search takes; whoever asks for more gets the learner."""
    from resight.datasets.synthetic import draw_cameras
    from resight.gallery import Gallery
    from resight.models.fitting import fit

    drawn = draw_cameras(tmp_path / "cameras", n_people=24, seed=3)
    store, place = tmp_path / "features", tmp_path / "gallery"
    model = fit(drawn, descriptor="whos-star", learner=learner, store=store, jobs=1)
    gallery = Gallery.create(place, model)
    gallery.add(drawn)
    gallery.close()
    image = drawn.files()[0]
    words = ["search", str(place), str(image)]
    code = f"from resight.cli import main; assert main({words!r}) == 0"
    probe = f"{code}\nimport sys\nprint('loaded:', *({{*sys.modules}} & {{*{NOT_FOR_A_SEARCH}}}))"
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=120
    )
    assert str(image) in done.stdout  # it found something
    assert done.stdout.rsplit("loaded:", 1)[1].split() == []
