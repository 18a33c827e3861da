"""Everything between a file and an array: reading, resizing, colour spaces, Retinex."""

from __future__ import annotations
