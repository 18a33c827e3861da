"""CMC, mAP and mINP of distances; `RankingResult` has them for each query too."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.evaluation.ranking import RankingResult

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Options(TypedDict, total=False):
    """What `cmc` and all the others take beside distances and people."""

    query_cameras: ArrayLike | None
    gallery_cameras: ArrayLike | None
    junk: ArrayLike | None


def cmc(
    distances: ArrayLike,
    query_persons: ArrayLike,
    gallery_persons: ArrayLike,
    *,
    query_cameras: ArrayLike | None = None,
    gallery_cameras: ArrayLike | None = None,
    junk: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Cumulative match characteristic: how many queries are answered within the first k.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_gallery)
        Smaller is more alike.
    query_persons, gallery_persons : array-like of shape (n_queries,), (n_gallery,)
        Whom each sighting shows. Gallery people nobody asks for are distractors: they count as
        wrong answers.
    query_cameras, gallery_cameras : array-like, optional
        With cameras, gallery sightings of the query's person by the query's own camera are
        ignored (the rule of Market-1501 [1]_).
    junk : boolean array-like of shape (n_gallery,), optional
        Gallery sightings that are ignored for every query.

    Returns
    -------
    array of shape (n_candidates,)
        Entry k - 1 is the fraction of queries with a right answer among the first k; as long as
        the longest ranked list. A tie with a wrong answer counts as ranked after it.

    See Also
    --------
    RankingResult : the ranks of each query, and everything else that a ranking tells.

    References
    ----------
    .. [1] Zheng et al., "Scalable person re-identification: a benchmark", ICCV 2015.

    Examples
    --------
    >>> cmc([[0.1, 0.9], [0.5, 0.5]], ["ann", "bob"], ["ann", "bob"]).tolist()
    [0.5, 1.0]
    """
    options = Options(query_cameras=query_cameras, gallery_cameras=gallery_cameras, junk=junk)
    return _ranked(distances, query_persons, gallery_persons, **options).cmc


def mean_average_precision(
    distances: ArrayLike,
    query_persons: ArrayLike,
    gallery_persons: ArrayLike,
    **options: Unpack[Options],
) -> float:
    """Mean over queries of the average precision; parameters as in `cmc`.

    The average precision of a query is the mean, over its right answers, of the precision at
    the rank of that answer (no interpolation).
    """
    return _ranked(distances, query_persons, gallery_persons, **options).mean_average_precision


def mean_inverse_negative_penalty(
    distances: ArrayLike,
    query_persons: ArrayLike,
    gallery_persons: ArrayLike,
    **options: Unpack[Options],
) -> float:
    """Mean over queries of (number of right answers) / (rank of the last one).

    It says how much of the list must be looked at to find every sighting of the person [1]_;
    parameters as in `cmc`.

    References
    ----------
    .. [1] Ye et al., "Deep learning for person re-identification: a survey and outlook",
       TPAMI 2022.
    """
    ranked = _ranked(distances, query_persons, gallery_persons, **options)
    return ranked.mean_inverse_negative_penalty


def average_precisions(
    distances: ArrayLike,
    query_persons: ArrayLike,
    gallery_persons: ArrayLike,
    **options: Unpack[Options],
) -> NDArray[np.float64]:
    """Average precision of each query; parameters as in `cmc`."""
    return _ranked(distances, query_persons, gallery_persons, **options).average_precisions


def _ranked(*distances_and_persons: ArrayLike, **options: Unpack[Options]) -> RankingResult:
    return RankingResult.from_distances(*distances_and_persons, depth=0, **options)
