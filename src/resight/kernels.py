"""Kernels between sightings: the only place that knows kernel formulas and bandwidth rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, unknown_name
from resight.saving import SavableMixin

Floats = NDArray[np.float64]
Rows = NDArray[Any]  # float32 or float64 descriptors, one sighting a row

KERNELS = ("linear", "rbf", "poly", "chi2", "chi2-rbf", "exp", "precomputed")
OF_PRODUCTS = ("linear", "rbf", "poly", "exp")  # functions of inner products alone
NON_NEGATIVE = ("chi2", "chi2-rbf")
_FEATURES_AT_ONCE = 2048  # columns converted together: bounds the copy that a product needs
_FEW_ROWS, _ROWS_AT_ONCE = 4, 8  # against so few rows, the others are converted some at a time
_TERMS_AT_ONCE = 2**16  # terms of chi-square held at a time: two such arrays stay in the cache
_CHI2_FLOOR = 1e-10  # of the published chi-square code: keeps 0/0 at 0


@dataclass(eq=False)
class Kernel(SavableMixin):
    """A kernel function with its bandwidth learned from the training rows.

    Parameters
    ----------
    kernel : str or callable
        One of `KERNELS`, or a function of two arrays that returns the matrix between their rows.
    gamma : "mean" or float
        "mean" is the rule published for each kernel: ``rbf`` 1 / mean squared distance of all
        training pairs, the zero diagonal included; ``chi2-rbf`` 1 / (2 mean chi-square distance
        of distinct pairs); ``exp`` 1 / (2 s^2), s the 25th percentile of the distances of
        distinct pairs; ``poly`` 1.
    width : float
        Multiplies the squared bandwidth, so divides gamma.
    degree, coef0 : of ``poly``, which is (gamma x.z + coef0)^degree.
    precision : "float64" or "float32"
        Arithmetic of the inner products; everything after them is float64.

    Notes
    -----
    With x.z the inner product, e the Euclidean and c the chi-square distance
    sum (x-z)^2/(x+z): linear x.z; rbf exp(-gamma e^2); poly (gamma x.z + coef0)^degree;
    chi2 2 sum xz/(x+z); chi2-rbf exp(-gamma c); exp exp(-gamma e).
    """

    state_version = 1
    learned = "gamma_"

    kernel: str | Callable[[Rows, Rows], Floats] = "rbf"
    _: KW_ONLY
    gamma: float | str = "mean"
    width: float = 1.0
    degree: int = 2
    coef0: float = 1.0
    precision: str = "float64"
    gamma_: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str) and self.kernel not in KERNELS:
            raise unknown_name("kernel", self.kernel, KERNELS)

    def fit_matrix(self, X: Rows) -> Floats:
        """Learn the bandwidth from the training rows and return their matrix, (N, N)."""
        if self.kernel == "precomputed":
            require_square(X)
            return np.array(X, dtype=np.float64)
        if callable(self.kernel):
            return _checked_callable(self.kernel(X, X), len(X), len(X))
        if self.kernel in OF_PRODUCTS:
            return self.fit_products(inner_products(X, X, self.precision))
        matrix = self._chi2_matrix(X, X)
        if self.kernel == "chi2":
            return matrix
        distinct = len(X) * (len(X) - 1)  # ordered pairs; the diagonal is zero
        self.gamma_ = self._bandwidth(lambda: 2.0 * float(matrix.sum() / distinct))
        return _exp_of(matrix, self.gamma_)

    def fit_products(self, products: Floats) -> Floats:
        """Do as `fit_matrix` from the inner products of the training rows, which are overwritten.

        For the kernels `OF_PRODUCTS` only: a Gram matrix computed once serves them all.
        """
        squares = products.diagonal().copy()  # (N,)
        if self.kernel == "rbf":
            # mean |x_i - x_j|^2 over all N^2 pairs, without forming them
            self.gamma_ = self._bandwidth(
                lambda: 2.0 * float(products.diagonal().mean() - products.mean())
            )
        elif self.kernel == "exp":
            distances = np.sqrt(_squared_distances(products, squares, squares), out=products)
            np.fill_diagonal(distances, 0.0)  # the root would magnify round-off
            self.gamma_ = self._bandwidth(lambda: 2.0 * _first_quartile(distances) ** 2)
            return _exp_of(distances, self.gamma_)
        elif self.kernel == "poly":
            self.gamma_ = self._bandwidth(lambda: 1.0)
        matrix = self.of_products(products, squares, squares)
        if self.kernel == "rbf":
            np.fill_diagonal(matrix, 1.0)
        return matrix

    def rows(self, X: Rows, X_fit: Rows | None, squares: Floats | None = None) -> Floats:
        """Return kernel values of new sightings against the training ones, (n, N).

        `squares` are the squared norms of the training ones, if they are known.
        """
        if self.kernel == "precomputed" or X_fit is None:
            return np.asarray(X, dtype=np.float64)
        if callable(self.kernel):
            return _checked_callable(self.kernel(X, X_fit), len(X), len(X_fit))
        if self.kernel in OF_PRODUCTS:
            products = inner_products(X, X_fit, self.precision)
            squares = row_squares(X_fit) if squares is None else squares
            return self.of_products(products, row_squares(X), squares)
        matrix = self._chi2_matrix(X, X_fit)
        return matrix if self.kernel == "chi2" else _exp_of(matrix, self._fitted_gamma())

    def of_products(self, products: Floats, squares_a: Floats, squares_b: Floats) -> Floats:
        """Turn inner products (and the rows' squared norms) into kernel values, in place."""
        if self.kernel == "linear":
            return products
        gamma = self._fitted_gamma()
        if self.kernel == "poly":
            products *= gamma
            products += self.coef0
            return np.power(products, self.degree, out=products)
        distances = _squared_distances(products, squares_a, squares_b)
        if self.kernel == "exp":
            np.sqrt(distances, out=distances)
        return _exp_of(distances, gamma)

    def _bandwidth(self, rule: Callable[[], float]) -> float:
        """Apply `width` to the given gamma or to the inverse of what the published rule gives."""
        scale = rule() if isinstance(self.gamma, str) else 1.0 / float(self.gamma)
        if not (np.isfinite(scale) and scale > 0):
            raise InputError(
                f"the {self.kernel} kernel has no bandwidth: all training rows are (nearly) equal. "
                "Check for constant features, or set gamma to a number"
            )
        return 1.0 / (scale * self.width)

    def _fitted_gamma(self) -> float:
        if self.gamma_ is None:
            raise InputError("this kernel has no bandwidth yet: call fit_matrix on training rows")
        return self.gamma_

    def _chi2_matrix(self, A: Rows, B: Rows) -> Floats:
        for rows in (A, B):
            if rows.size and rows.min() < 0:
                raise InputError(
                    f"the {self.kernel} kernel needs non-negative features, but the smallest value "
                    f"is {rows.min():.4g}. Use raw histograms such as LOMO or WHOS (not GOG, not "
                    "after BlockNormalizer) or kernel='rbf'"
                )
        return _chi2_sums(A, B, distances=self.kernel == "chi2-rbf")


def inner_products(A: Rows, B: Rows, precision: str = "float64") -> Floats:
    """Inner products of rows, (len(A), len(B)), without a second copy of either matrix.

    Features are taken some columns at a time and the partial sums are float64; with
    ``precision="float32"`` the products of each group of columns are float32.
    """
    total = np.zeros((len(A), len(B)))
    if len(A) <= _FEW_ROWS and precision == "float64":  # what is converted stays in the cache
        few = A.astype(precision, copy=False)
        for start in range(0, len(B), _ROWS_AT_ONCE):
            some = B[start : start + _ROWS_AT_ONCE].astype(precision, copy=False)
            total[:, start : start + _ROWS_AT_ONCE] = few @ some.T
        return total
    same = A is B
    for start in range(0, A.shape[1], _FEATURES_AT_ONCE):
        columns = slice(start, start + _FEATURES_AT_ONCE)
        left = A[:, columns].astype(precision, copy=False)
        right = left if same else B[:, columns].astype(precision, copy=False)
        # NumPy takes the symmetric rank-k update when right is left.
        if start == 0:
            np.matmul(left, right.T, out=total)
        else:
            total += left @ right.T
    return total


def row_squares(X: Rows) -> Floats:
    """Squared norms of rows in float64, (n,)."""
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _squared_distances(products: Floats, squares_a: Floats, squares_b: Floats) -> Floats:
    products *= -2.0
    products += squares_a[:, None]
    products += squares_b[None, :]
    return np.maximum(products, 0.0, out=products)


def _exp_of(distances: Floats, gamma: float) -> Floats:
    distances *= -gamma
    return np.exp(distances, out=distances)


def _first_quartile(distances: Floats) -> float:
    upper = np.concatenate([row[i + 1 :] for i, row in enumerate(distances)])
    rank = int(np.ceil(0.25 * len(upper))) - 1
    return float(np.partition(upper, rank)[rank])


def _chi2_sums(A: Rows, B: Rows, *, distances: bool) -> Floats:
    """Sum (x - z)^2 / (x + z), or 2 x z / (x + z), for all pairs of rows, in bounded memory."""
    same = A is B
    matrix = np.empty((len(A), len(B)))
    at_once = max(1, _TERMS_AT_ONCE // max(1, A.shape[1]))
    buffers = np.empty((2, at_once, A.shape[1]))
    for i, row in enumerate(A):
        single = row.astype(np.float64)
        for start in range(i if same else 0, len(B), at_once):
            others = B[start : start + at_once]
            terms, sums = buffers[:, : len(others)]
            np.add(single, others, out=sums)
            sums += _CHI2_FLOOR
            if distances:
                np.subtract(single, others, out=terms)
                terms *= terms
            else:
                np.multiply(2.0 * single, others, out=terms)
            terms /= sums
            matrix[i, start : start + at_once] = terms.sum(axis=1)
        if same:
            matrix[i:, i] = matrix[i, i:]
    return matrix


def require_square(K: Rows) -> None:
    """Refuse a precomputed kernel matrix of other shape."""
    if K.shape[0] != K.shape[1]:
        raise InputError(
            f"a precomputed kernel must be square (n_train, n_train) at fit; given {K.shape}"
        )


def _checked_callable(matrix: Any, n_rows: int, n_columns: int) -> Floats:
    checked = np.array(matrix, dtype=np.float64)
    if checked.shape != (n_rows, n_columns):
        raise InputError(
            f"the kernel function returned shape {checked.shape}, not ({n_rows}, {n_columns}): "
            "given two arrays, it must return the matrix between their rows"
        )
    return checked
