"""Fixtures shared by all tests: reference material that may or may not be beside the checkout."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

# A run started in the background ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference outputs and research images, if this checkout has it beside it."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared beside this checkout: reference outputs are not available")
    return SHARED


@pytest.fixture(scope="session")
def golden(shared: Path) -> Path:
    """Reference outputs of published codes."""
    return shared / "golden"
