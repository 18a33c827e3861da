"""
Why two sightings look alike
============================

The learned distance between two images is divided among strips of the image and channels of the
descriptors.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from resight import KXQDA, Model
from resight.datasets.synthetic import draw_cameras
from resight.explanation import Explainer
from resight.images import read

folder = Path(tempfile.mkdtemp())
people = draw_cameras(folder, n_people=70, seed=4)

# %%
# Fifty people train the model; the others show what is usual between two people.
model = Model(("whos-dagger", "lomo-dagger"), KXQDA())
features = model.describe(people.files())
learned = people.persons <= "0050"
model.fit(features[learned], people.persons[learned], people.cameras[learned])
explainer = Explainer(model, features[~learned], people.persons[~learned])


# %%
def row_of(person: str, camera: str) -> int:
    """Find the sighting of a person by a camera."""
    return int(np.flatnonzero((people.persons == person) & (people.cameras == camera))[0])


figure, axes = plt.subplots(1, 6, figsize=(10, 3.6), width_ratios=[1, 1, 1.6] * 2)
for place, (title, other) in enumerate((("one person", "0054"), ("two people", "0055"))):
    rows = [row_of("0054", "camera-1"), row_of(other, "camera-2")]
    found = explainer.explain_features(features[rows])
    print(f"{title}: {found.summary}")
    first, second, bars = axes[3 * place : 3 * place + 3]
    for axis, row in ((first, rows[0]), (second, rows[1])):
        axis.imshow(read(people.files()[row]))
        axis.axis("off")
    bars.barh(
        [band.label for band in found.bands][::-1], [100 * b.level for b in found.bands][::-1]
    )
    bars.set(title=title, xlabel="% of the usual", xlim=(0, 300))
    bars.axvline(100, color="grey", linewidth=0.8)
figure.tight_layout()
plt.show()
