"""Why two sightings are alike or different: strips, colours and textures of a learned distance.

A distance is divided among *parts* (strip of the image x channel of a descriptor): "exact" where
the learner is linear in the features, by "integrated gradients" where its kernel is a function of
inner products, and elsewhere by how much it falls when a part is the same in both sightings ("leave
part out") or, for networks, covered ("occlusion"). See docs/explanation.md.
"""

from resight.explanation.explanation import Explainer, Explanation, Share

__all__ = ["Explainer", "Explanation", "Share"]
