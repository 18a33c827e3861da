"""Types of parameters that learners share; what scikit-learn checks follows from the types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from sklearn.utils._param_validation import Interval, StrOptions

from resight.kernels import KERNELS

Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
NotNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Share = Annotated[float, Interval(Real, 0, 1, closed="both")]
PositiveShare = Annotated[float, Interval(Real, 0, 1, closed="right")]
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Folds = Annotated[int, Interval(Integral, 2, None, closed="left")]
Seed = Annotated[int, Interval(Integral, 0, None, closed="left")]
KernelName = Annotated[str, StrOptions(set(KERNELS))]
Precision = Literal["float64", "float32"]
Components = Literal["auto", "full"] | Count  # of a PCA

_CHECKS = {bool: "boolean", Sequence: "array-like", tuple: "array-like", Callable: callable}


def constraints_of(learner: type) -> dict[str, list[Any]]:
    """Return scikit-learn's constraints of the parameters that a class states as typed fields."""
    hints = get_type_hints(learner, include_extras=True)
    return {
        name: list(_allowed(hint))
        for name, hint in hints.items()
        if get_origin(hint) is not ClassVar and not name.startswith("_") and name[-1] != "_"
    }


def _allowed(hint: Any) -> Iterator[Any]:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        for one in get_args(hint):
            yield from _allowed(one)
    elif origin is Literal:
        yield StrOptions(set(get_args(hint)))
    elif origin is Annotated:
        yield hint.__metadata__[0]
    else:
        yield None if hint is NoneType else _CHECKS.get(origin or hint, origin or hint)
