"""What comes from others is what was tested: vendored files by digest, dependencies by lock."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-dev.lock")


def test_vendored_files_are_unchanged_and_all_of_them_are_listed() -> None:
    lines = (ROOT / "SHA256SUMS").read_text().splitlines()
    listed = {path: digest for digest, path in (line.split() for line in lines)}
    for path, digest in listed.items():
        assert hashlib.sha256((ROOT / path).read_bytes()).hexdigest() == digest, path
    vendored = {
        str(file.relative_to(ROOT))
        for folder in ("src", "tests", "docs")
        for file in (ROOT / folder).rglob("*.min.*")
    }
    assert vendored == set(listed)


def pinned(lock: str) -> dict[str, set[str]]:
    """Packages of a lock file and their versions, each with at least one digest.

    A package has several where older Pythons get an older one.
    """
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        match = re.match(r"([\w.-]+)==(\S+)", line)
        if match:
            assert "--hash=sha256:" in line, line
            found.setdefault(_plain(match[1]), set()).add(match[2])
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
@pytest.mark.parametrize("lock", LOCKS)
def test_everything_that_users_install_is_locked(lock: str) -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    names = [re.match(r"[\w.-]+", word)[0] for word in [*project["dependencies"], *extras]]
    missing = {_plain(name) for name in names} - {"resight"} - set(pinned(lock))
    assert not missing, f"run `make lock`: {missing}"


def test_users_get_the_versions_that_are_tested() -> None:
    users, tested = map(pinned, LOCKS)
    assert set(users) < set(tested)
    assert not {name for name in users if not users[name] <= tested[name]}
    assert "pytest" not in users
