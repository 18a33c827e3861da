"""
Search with calibrated probabilities
====================================

A model is calibrated on held-out training people, so a search says how sure it is, and also when
somebody is probably not there.
"""

# %%
# Ninety people train the model. The gallery holds 30 others, seen by camera 2.
import io
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import resight
from resight.datasets.synthetic import draw_cameras
from resight.images import read

folder = Path(tempfile.mkdtemp())
people = draw_cameras(folder / "cameras", n_people=140, seed=5)
labelled, stored = people.persons <= "0090", people.persons > "0090"
stored &= (people.persons <= "0120") & (people.cameras == "camera-2")

options = {"store": folder / "features", "jobs": 1}
model = resight.fit(people.select(labelled), descriptor="lomo-dagger", learner="kxqda", **options)
gallery = resight.Gallery.create(folder / "gallery", model)
gallery.add(people.select(stored))

# %%
# Two searches with pictures of camera 1: person 0100 is in the gallery, person 0130 is not.
figure, axes = plt.subplots(2, 6, figsize=(9, 6.4))
for row, person in zip(axes, ("0100", "0130"), strict=True):
    query = people.files()[np.flatnonzero(people.persons == person)[0]]
    row[0].imshow(read(query))
    row[0].set_title(f"query: {person}")
    for axis, hit in zip(row[1:], gallery.search(query, k=5), strict=True):
        axis.imshow(plt.imread(io.BytesIO(gallery.image(hit.id))))
        axis.set_title(f"{hit.person}: {100 * hit.probability:.0f}%")
for axis in axes.flat:
    axis.axis("off")
figure.tight_layout()

# %%
# Are the probabilities right as often as they claim? ``evaluate(calibrate=True)`` measures it on
# test people; the curve in the report should follow the diagonal.
from resight.report.displays import ReliabilityDisplay

result = resight.evaluate(
    people, descriptor="lomo-dagger", learner="xqda", calibrate=True, **options
)
figure, axis = plt.subplots(figsize=(4.5, 4.5))
ReliabilityDisplay.from_document(result.document).plot(axis)
plt.show()
