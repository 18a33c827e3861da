"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import settings

# Examples are timed by pytest-timeout; a busy machine must not fail them one by one.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
