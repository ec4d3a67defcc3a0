"""A number is computed on the device, copied to the host, and used there."""

import numpy as np

import quadpy as qp

I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


@qp.kernel
def count(valid: I32, number: I32):
    for i in valid:
        number[0] += valid[i]


valid, number, length = qp.ndarray(qp.i32, 4096), qp.ndarray(qp.i32, 1), qp.ndarray(qp.i32, 1)
on_host = np.zeros(1, np.int32)
graph = qp.graph.Graph()
graph.add_kernel(count, valid, number)
graph.add_memcpy(on_host, number)
with graph.instantiate() as run, qp.create_stream() as stream:
    run.launch(stream)
    # fixed by: stream.synchronize()
    length.from_numpy(on_host)
