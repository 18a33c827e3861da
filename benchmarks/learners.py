"""Time and memory of every learner on 486 persons, two cameras, 26,960 features."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import forget_peak, in_fresh_process, peak_gigabytes
from resight.experiments.tables import markdown_table

N_PERSONS, N_FEATURES, N_LATENT = 486, 26_960, 300
LEARNERS = (
    "KXQDA",
    "XQDA",
    "KISSME",
    "KernelKISSME",
    "LFDA",
    "KernelLFDA",
    "MFA",
    "KernelMFA",
    "NFST",
    "KernelNFST",
    "NK3ML",
    "IRS",
    "LMNN",
    "ITML",
    "MLAPG",
)
LONG_FIT = 20.0  # seconds: measured once only


@dataclass(frozen=True)
class Measured:
    """Processor seconds of the fastest fit and embedding, gigabytes that the first fit added."""

    fit: float
    embed: float
    memory: float
    fit_of_kxqda: float


def run() -> str:
    """Measure each learner in a fresh process, so that its peak of memory is its own."""
    results = {name: in_fresh_process(_measure, name) for name in LEARNERS}
    memory_of_kxqda = results["KXQDA"].memory
    rows = [
        [
            name,
            f"{result.fit:.2f} s",
            f"{result.fit / result.fit_of_kxqda:.2f}",
            f"{result.memory:.2f} GB",
            f"{result.memory / memory_of_kxqda:.2f}",
            f"{result.embed:.2f} s",
        ]
        for name, result in results.items()
    ]
    headings = ("learner", "fit", "to KXQDA", "memory", "to KXQDA", "embed N")
    return (
        f"{markdown_table(headings, rows)}\n\nDefaults, N = {2 * N_PERSONS}, d = "
        f"{N_FEATURES:,}, one thread; time as a ratio to KXQDA fitted by turns in the same process."
    )


def _measure(name: str, rounds: int = 3) -> Measured:
    from threadpoolctl import threadpool_limits

    import resight

    X, persons, cameras = sightings()
    learner, kxqda = getattr(resight, name)(), resight.KXQDA()
    warm = np.flatnonzero(persons < 12)  # loads libraries, so that they are nobody's memory
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for warming in (learner, kxqda):
            warming.fit(X[warm, :500], persons[warm], cameras[warm])
        forget_peak()  # making the sightings took more than some fits do
        before = peak_gigabytes()
        fits = [_seconds(lambda: learner.fit(X, persons, cameras))]
        memory = peak_gigabytes() - before
        embeds = [_seconds(lambda: learner.transform(X))]
        fits_of_kxqda = [_seconds(lambda: kxqda.fit(X, persons, cameras))]
        while len(fits) < rounds and fits[0] < LONG_FIT:
            fits.append(_seconds(lambda: learner.fit(X, persons, cameras)))
            fits_of_kxqda.append(_seconds(lambda: kxqda.fit(X, persons, cameras)))
    return Measured(min(fits), min(embeds), memory, min(fits_of_kxqda))


def sightings(
    n_persons: int = N_PERSONS,
) -> tuple[NDArray[np.float32], NDArray[np.intp], NDArray[np.intp]]:
    """Unit-norm descriptors: persons with traits, changed by camera and chance."""
    rng = np.random.default_rng(0)
    persons = np.tile(np.arange(n_persons), 2)
    cameras = np.repeat([0, 1], n_persons)
    traits = rng.normal(size=(n_persons, N_LATENT))[persons]
    traits += 0.5 * rng.normal(size=traits.shape) + 0.5 * rng.normal(size=(2, N_LATENT))[cameras]
    looks = rng.standard_normal((N_LATENT, N_FEATURES), dtype=np.float32)
    X = traits.astype(np.float32) @ looks
    for row in X:  # one at a time: the peak of memory belongs to the learner
        row += 10 * rng.standard_normal(N_FEATURES, dtype=np.float32)
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, persons, cameras


def _seconds(work: Callable[[], object]) -> float:
    """Processor time: with one thread it is the time of an idle machine, also on a busy one."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    print(run())
