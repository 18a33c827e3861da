"""
How many people to label
========================

A learning curve on your own cameras: rank 1 against the number of labelled people, always tested on
the same others.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import resight
from resight.datasets.synthetic import draw_cameras
from resight.report.displays import LearningCurveDisplay

folder = Path(tempfile.mkdtemp())
people = draw_cameras(folder / "cameras", n_people=160, seed=4)

# %%
# Subsets of the training people are drawn in each split and nested. All fits start from inner
# products that are computed once, so no image is described again.
result = resight.evaluate(
    people,
    descriptor="lomo-dagger",
    learner="kxqda,xqda,euclidean",
    curve=[10, 20, 40, 80],
    store=folder / "features",
    jobs=1,
)
print(result)

# %%
display = LearningCurveDisplay.from_document(result.document)
figure, axis = plt.subplots(figsize=(6, 4))
display.plot(axis)
axis.set_title("What the next labels would bring")
plt.show()
