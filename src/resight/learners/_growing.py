"""Learners to which people can be added without fitting again."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from resight._files import digest_of
from resight.errors import InputError
from resight.learners._base import (
    Codes,
    Floats,
    KernelMetricLearner,
    encode,
    encode_cameras,
    fingerprint_of,
    lay_out_as_saved,
)

Self = TypeVar("Self", bound="GrowingLearner")


class NewPeople(NamedTuple):
    """Sightings of people who are added: rows, names of people and cameras, codes of the rows."""

    X: Floats
    people: NDArray[Any]
    persons: Codes
    names: NDArray[Any] | None
    cameras: Codes | None


class GrowingLearner(KernelMetricLearner):
    """A kernel learner whose `_learn_more` adds people to what it has learned."""

    def _grow(self: Self, X: ArrayLike, y: ArrayLike, cameras: ArrayLike | None) -> Self:
        """Add all sightings of new people, or leave this object as it is."""
        self._validate_params()
        rows: Floats
        rows, labels = validate_data(self, X, y, dtype=self._dtypes, reset=False)
        distinct, persons = encode(labels, "persons")
        self.refuse_known(distinct, without_cameras=cameras is None)
        codes = encode_cameras(cameras, len(rows))
        names = None if cameras is None else np.unique(np.asarray(cameras))
        fresh = copy.copy(self)
        fresh._learn_more(NewPeople(rows, distinct, persons, names, codes))
        fresh.persons_ = np.union1d(self.persons_, distinct)
        fresh.training_fingerprint_ = digest_of(
            self.training_fingerprint_, fingerprint_of(rows, persons, codes)
        )
        lay_out_as_saved(fresh)
        self.__dict__ = fresh.__dict__
        return self

    def refuse_known(self, persons: NDArray[Any], *, without_cameras: bool) -> None:
        """Refuse people who cannot be added to those learned from before."""
        known = persons[np.isin(persons, self.persons_)]
        if len(known):
            raise InputError(
                f"{len(known)} people were learned from before, such as {known[0]!s}. Add all "
                "sightings of a person at once, or fit again on everything"
            )

    @property
    @abstractmethod
    def n_sightings(self) -> int:
        """How many sightings it has learned from."""

    @abstractmethod
    def _learn_more(self, new: NewPeople) -> None:
        """Learn from the sightings of new people."""
