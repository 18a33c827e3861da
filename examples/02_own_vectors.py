"""
Your own vectors
================

Learners are scikit-learn estimators for vectors of any kind: cars, whales, voices. Images are not
needed.
"""

# %%
# Vectors of 100 people seen by two cameras. The second camera stretches some directions and adds
# noise of its own, as a change of light does.
import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

from resight import KXQDA, XQDA, Euclidean

rng = np.random.default_rng(0)
n_people, n_features = 100, 60
persons = np.tile(np.arange(n_people), 2)
cameras = np.repeat(["door", "yard"], n_people)
noise = rng.normal(size=(n_features, n_features)) * np.linspace(0.05, 1.0, n_features)
X = rng.normal(size=(n_people, n_features))[persons]
X += 0.5 * rng.normal(size=X.shape) @ noise

train, test = persons < 60, persons >= 60

# %%
# ``score`` is rank 1 across cameras, so scikit-learn's model selection works. ``GroupKFold`` with
# ``groups=persons`` holds out whole people. Cameras reach the learner by metadata routing.
sklearn.set_config(enable_metadata_routing=True)
learner = KXQDA(kernel="linear", reg_form="kernel")
search = GridSearchCV(
    learner.set_fit_request(cameras=True).set_score_request(cameras=True),
    {"reg": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]},
    cv=GroupKFold(5),
)
search.fit(X[train], persons[train], groups=persons[train], cameras=cameras[train])
print(search.best_params_)

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5))
scores = {
    "Euclidean": Euclidean().fit(X[train], persons[train], cameras[train]),
    "XQDA": XQDA().fit(X[train], persons[train], cameras[train]),
    "k-XQDA, reg chosen": search.best_estimator_,
}
figures = [
    100 * one.score(X[test], persons[test], cameras=cameras[test]) for one in scores.values()
]
axes[0].barh(list(scores), figures)
axes[0].set(xlabel="rank 1 on people never seen, %")

# %%
# ``transform`` gives an embedding in which the learned distance is squared Euclidean: any index,
# clustering or plot can use it.
E = search.best_estimator_.transform(X[test])
squared = ((E[:1] - E) ** 2).sum(axis=1)
assert np.allclose(squared, search.best_estimator_.distances(X[test][:1], X[test])[0])
same = squared[1:][persons[test][1:] == persons[test][0]]
axes[1].hist(squared[1:], bins=20, label="other people")
axes[1].axvline(same[0], color="C1", label="the same person, other camera")
axes[1].set(xlabel="learned distance to one sighting")
axes[1].legend()
figure.tight_layout()
plt.show()
