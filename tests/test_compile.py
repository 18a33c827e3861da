"""Where compiled code is kept, and that it is kept apart from the user's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest

from resight import _compile
from resight._compile import cache_folder


@pytest.fixture(autouse=True)
def _look_again() -> Iterator[None]:
    cache_folder.cache_clear()
    yield
    cache_folder.cache_clear()


def test_the_user_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


def test_the_users_cache_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "resight" / "compiled"


def test_a_private_temporary_folder_comes_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(_compile.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = cache_folder()
    assert folder is not None
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_strangers_can_write_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Cached code gets executed, so nobody else may be able to put code there."""
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(open_to_all))
    assert cache_folder() is None


def test_the_users_numba_settings_are_left_alone() -> None:
    before = numba.config.CACHE_DIR
    function = _compile.kernel(_add)
    assert before == numba.config.CACHE_DIR
    assert function(1, 2) == 3


def _add(a: int, b: int) -> int:
    return a + b


def test_importing_the_descriptors_loads_neither_numba_nor_scikit_learn() -> None:
    program = (
        "import sys, resight.descriptors; "
        "print([name for name in ('numba', 'sklearn', 'matplotlib', 'cv2') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
