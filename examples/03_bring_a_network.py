"""
Bring a network
===============

Any ONNX file that turns a crop into a vector is one more descriptor. Here a tiny one is written on
the spot: it averages colours over a grid of cells.
"""

# %%
# The network: one pooling and one reshaping, 3 x 8 x 4 numbers. Yours would be OSNet or a ViT.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import onnx
from onnx import TensorProto, helper

import resight
from resight.datasets.synthetic import draw_cameras

folder = Path(tempfile.mkdtemp())
images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, 128, 64])
vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", 96])
nodes = [
    helper.make_node("AveragePool", ["images"], ["cells"], kernel_shape=[16, 16], strides=[16, 16]),
    helper.make_node("Flatten", ["cells"], ["vectors"]),
]
graph = helper.make_graph(nodes, "cells", [images], [vectors])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
model.ir_version = 8
onnx.save(model, str(folder / "cells.onnx"))

# %%
# A descriptor that ends in ``.onnx`` is a file, and ``+`` joins it with others. How images are
# prepared (size, mean, deviation) is read from the graph or from a JSON beside the file; see
# ``resight network describe``.
people = draw_cameras(folder / "cameras", n_people=80, seed=2)
network = str(folder / "cells.onnx")
results = {
    words: resight.evaluate(
        people, descriptor=descriptor, learner=learner, store=folder / "features", jobs=1
    )
    for words, descriptor, learner in (
        ("network, no labels", network, "euclidean"),
        ("network, k-XQDA", network, "kxqda"),
        ("network + WHOS, k-XQDA", f"{network}+whos-star", "kxqda"),
    )
}

# %%
# What labels add, measured on people who were not trained on.
summaries = [one.document["runs"][0]["summary"]["rank1"] for one in results.values()]
figure, axis = plt.subplots(figsize=(7, 2.5))
axis.barh(list(results), [one["mean"] for one in summaries], xerr=[one["sd"] for one in summaries])
axis.set(xlabel="rank 1, %, mean and standard deviation over 10 splits", xlim=(0, 100))
figure.tight_layout()
plt.show()
