"""From video or frames to crops of people: ``resight crop``."""

from resight.datasets.video.cut import Cut, cut

__all__ = ["Cut", "cut"]
