"""From video or frames to crops of people: ``resight crop``."""

from resight.gallery.cutting.cut import Cut, cut

__all__ = ["Cut", "cut"]
