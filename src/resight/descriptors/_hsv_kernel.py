"""Hue, saturation and value of one pixel, compiled; `resight.images.colour.hsv` is its oracle."""

from __future__ import annotations

from resight._compile import kernel


@kernel
def pixel_hsv(red: float, green: float, blue: float) -> tuple[float, float, float]:
    """Convert one pixel of values in [0, 1] by the very operations of `colour.hsv`."""
    value = max(red, green, blue)
    spread = value - min(red, green, blue)
    if spread == 0.0:
        return 0.0, 0.0, value
    if blue == value:
        hue = (4.0 + (red - green) / spread) / 6.0
    elif green == value:
        hue = (2.0 + (blue - red) / spread) / 6.0
    else:
        hue = ((green - blue) / spread) / 6.0
    if hue < 0.0:
        hue += 1.0
    return hue, spread / value, value
