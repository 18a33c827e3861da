"""
A first metric
==============

Draw people as two cameras would see them, train k-XQDA on half of them, and find the others.
"""

# %%
# Two cameras of a synthetic town. What a camera does to colours is the same in all of its pictures,
# so it can be learned; pose and light cannot.
import tempfile

import matplotlib.pyplot as plt
import numpy as np

from resight import KXQDA, BlockNormalizer, Euclidean
from resight.datasets.synthetic import draw_cameras
from resight.descriptors import LOMO
from resight.evaluation import cmc
from resight.images import read

folder = tempfile.mkdtemp()
people = draw_cameras(folder, n_people=120, n_cameras=2, seed=1)

figure, axes = plt.subplots(2, 8, figsize=(8, 4))
for row, camera in enumerate(np.unique(people.cameras)):
    files = [people.files()[i] for i in np.flatnonzero(people.cameras == camera)[:8]]
    for axis, file in zip(axes[row], files, strict=True):
        axis.imshow(read(file))
        axis.axis("off")
figure.suptitle("The same eight people: camera 1 above, camera 2 below")

# %%
# A descriptor turns each image into a vector. Half of the people are for training, the others for
# testing: nobody is in both.
X = LOMO(retinex=False).transform(people.files())
train = people.persons <= "0060"
print(X.shape, train.sum(), "training sightings")

normalizer = BlockNormalizer().fit(X[train])
learned_from = normalizer.transform(X[train]), people.persons[train], people.cameras[train]

# %%
# Test people of camera 1 are queries, those of camera 2 the gallery. ``distances`` is smaller for
# sightings that are more alike.
queries = ~train & (people.cameras == "camera-1")
gallery = ~train & (people.cameras == "camera-2")
figure, axis = plt.subplots(figsize=(6, 4))
for learner in (KXQDA(), Euclidean()):
    learner.fit(*learned_from)
    D = learner.distances(normalizer.transform(X[queries]), normalizer.transform(X[gallery]))
    curve = cmc(D, people.persons[queries], people.persons[gallery])
    name = type(learner).__name__
    axis.plot(np.arange(1, 21), 100 * curve[:20], label=f"{name}: rank 1 {100 * curve[0]:.0f}%")
axis.set(xlabel="rank", ylabel="found, %", title="60 test people")
axis.legend()
plt.show()
