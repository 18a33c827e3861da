"""CMC, mAP and mINP of distances, and rank 1 by pairs of cameras.

`RankingResult` has the measures for each query too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.evaluation.ranking import Options, RankingResult, answers

if TYPE_CHECKING:
    from typing_extensions import Unpack


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


def camera_pairs(
    distances: ArrayLike,
    query_persons: ArrayLike,
    gallery_persons: ArrayLike,
    query_cameras: ArrayLike,
    gallery_cameras: ArrayLike,
    *,
    junk: ArrayLike | None = None,
    cameras: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Count right first answers for each pair of cameras: how well one finds people in another.

    Every query is asked of each other camera that has seen its person, among the sightings of
    that camera alone. Ties never flatter: a wrong sighting at the same distance comes first.
    Parameters are those of `cmc`, and all cameras in the order of the table. Returns ``cameras``,
    how many queries were ``asked`` and how many of these were ``right``, by the query's camera
    (rows) and the camera searched (columns), in plain types.

    >>> found = camera_pairs([[1.0, 2.0, 3.0]], ["a"], ["a", "a", "b"], ["1"], ["2", "3", "3"])
    >>> found["cameras"], found["right"]
    (['1', '2', '3'], [[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    """
    D = np.asarray(distances, float)
    labels = answers(D, query_persons, gallery_persons, query_cameras, gallery_cameras, junk)
    asking, seen, persons = np.asarray(query_cameras), np.asarray(gallery_cameras), labels.persons
    names = np.union1d(asking, seen).tolist() if cameras is None else list(cameras)
    asked, right = np.zeros((2, len(names), len(names)), np.int64)
    for j, name in enumerate(names):
        columns = np.flatnonzero((seen == name) & ~labels.junk)
        part, same = D[:, columns], persons[0][:, None] == persons[1][columns]
        best_right = np.where(same, part, np.inf).min(axis=1, initial=np.inf)
        best_wrong = np.where(same, np.inf, part).min(axis=1, initial=np.inf)
        for i, own in enumerate(names):
            if i != j:
                counts = (asking == own) & np.isfinite(best_right)
                asked[i, j] = counts.sum()
                right[i, j] = (counts & (best_right < best_wrong)).sum()
    return {"cameras": names, "asked": asked.tolist(), "right": right.tolist()}
