"""Graph kernels with checkpoints, under the names of Quadrants."""

from __future__ import annotations

import quadpy.compat.quadrants as qd


def test_kernels_pause_at_checkpoints():
    qd.init(arch=qd.cpu)

    @qd.data_oriented
    class Work:
        def __init__(self):
            self.x, self.stop = qd.ndarray(qd.i32, 3), qd.ndarray(qd.i32, ())

        @qd.kernel(graph=True, checkpoints=True)
        def run(self):
            with qd.checkpoint(4, yield_on=self.stop):
                for i in range(3):
                    self.x[i] += 1

    work = Work()
    work.stop[None] = 1
    status = work.run()
    assert isinstance(status, qd.GraphStatus)
    assert status.checkpoint == 4
    work.stop[None] = 0
    assert not work.run.resume(from_checkpoint=4).yielded
    assert work.x.to_numpy().tolist() == [2, 2, 2]
