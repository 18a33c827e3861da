"""Why two sightings are alike or different: strips, colours and textures of a learned distance.

A distance is divided among *parts* (strip of the image x channel of a descriptor):

"exact"
    Learners that are linear in the (normalised) features: d = sum_f D_f [P P^T D]_f with
    D = x_a - x_b, added up over the features of each part.
"integrated gradients"
    Kernels that are functions of inner products (rbf, poly, exp): the gradient of the distance
    along the straight path from equal sightings to the two given ones. The parts add up to the
    distance, and for the linear kernel this is the exact decomposition.
"leave part out"
    Anything else (chi-square, a user's own kernel): by how much the distance falls when a part
    is the same in both sightings.
"occlusion"
    Models with a network: by how much the distance falls when a strip of both images is covered
    and one descriptor sees it.
"""

from resight.explanation.explanation import Explainer, Explanation, Share

__all__ = ["Explainer", "Explanation", "Share"]
