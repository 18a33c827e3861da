"""
Choose settings automatically
=============================

``auto`` chooses kernels, descriptors and weights on the training people, and whether to learn at
all. It says what it chose, and why.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import resight
from resight.datasets.synthetic import draw_cameras

folder = Path(tempfile.mkdtemp())
people = draw_cameras(folder / "cameras", n_people=60, seed=3)

# %%
# A budget in seconds keeps it short; without one it takes about a second per person.
model = resight.fit(
    people,
    descriptor="lomo-dagger+whos-dagger",
    learner="auto",
    params={"budget": 10},
    calibrate=False,
    store=folder / "features",
    jobs=1,
)
print(model.learner.why_)

# %%
# Everything that was tried is kept, with its score on held-out training people.
tried = sorted(model.learner.candidates_, key=lambda one: one["map"])[-15:]
labels = [f"{number}: {one['learner']}, {one['stage']}" for number, one in enumerate(tried, 1)]
figure, axis = plt.subplots(figsize=(7, 4.5))
axis.barh(
    labels,
    [100 * one["map"] for one in tried],
    xerr=[100 * one["standard_error"] for one in tried],
    color=["C1" if one["share"] else "C0" for one in tried],
)
axis.set(xlabel="mAP on people held out, %; orange: in the mixture", xlim=(60, 100))
figure.tight_layout()
plt.show()
