"""
Teach while searching
=====================

A user searches, confirms and rejects; the answers become labels, and the model is retrained. The
new model is adopted only if it finds more held-out people.
"""

# %%
# Only 20 people are labelled at first. The gallery holds everybody, most of them unnamed.
import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import resight
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Filter
from resight.gallery.teaching import adopt, refit

folder = Path(tempfile.mkdtemp())
people = draw_cameras(folder / "cameras", n_people=100, seed=6)
truth = {file.read_bytes(): p for file, p in zip(people.files(), people.persons, strict=True)}
known = people.persons <= "0020"
unnamed = replace(people, persons=np.where(known, people.persons, ""))

model = resight.fit(
    people.select(known),
    descriptor="whos-dagger",
    learner="xqda",
    store=folder / "features",
    jobs=1,
)
gallery = resight.Gallery.create(folder / "gallery", model)
gallery.add(unnamed, store=folder / "features")

# %%
# An operator looks for each of 40 unknown people of camera 1 in camera 2, goes through the first
# five results, and answers "same" or "different" for each until the person is found.
table = gallery.view.table
asked = (table.cameras == "camera-1") & (table.persons == "")
answers = {"same": 0, "different": 0}
for sighting in table.ids[asked][:40].tolist():
    for hit in gallery.search_like(sighting, k=5, where=Filter(cameras=["camera-2"])):
        right = truth[gallery.image(hit.id)] == truth[gallery.image(sighting)]
        kind = "same" if right else "different"
        gallery.teach(kind, sighting, hit.id)
        answers[kind] += 1
        if kind == "same":
            break
print(answers)

# %%
# ``refit`` trains on everything that is labelled now. Its gain is measured on the newly labelled
# people, each held out of the model that is tested on them.
candidate = refit(gallery)
print(candidate.words)
if candidate.better:
    adopt(gallery, candidate)

figure, axes = plt.subplots(1, 2, figsize=(8, 3))
axes[0].bar(list(answers), list(answers.values()))
axes[0].set(title="answers", ylabel="results looked at")
axes[1].bar(["20 people", "with the answers"], [candidate.before, candidate.after])
axes[1].set(title="held-out people", ylabel="rank 1, %", ylim=(0, 100))
figure.tight_layout()
plt.show()
