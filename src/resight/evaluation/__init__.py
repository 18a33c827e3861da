"""Pure functions from distances to CMC, mAP and mINP, statistics over trials, re-ranking.

Fractions everywhere; ties never flatter. Nothing here knows a learner or a dataset.
"""

from resight.evaluation.metrics import (
    average_precisions,
    cmc,
    mean_average_precision,
    mean_inverse_negative_penalty,
)
from resight.evaluation.ranking import RankingResult

__all__ = [
    "RankingResult",
    "average_precisions",
    "cmc",
    "mean_average_precision",
    "mean_inverse_negative_penalty",
]
