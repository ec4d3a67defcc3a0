"""Examples of windows."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_Window() -> None:
    picture = np.zeros((64, 64), np.float32)
    picture[:, 32:] = 1.0  # the first axis goes to the right, the second up
    with qp.view.Window("halves", (64, 64), where="memory") as window:
        window.image(picture)
        window.show()
        for event in window.events():
            assert isinstance(event, qp.view.Event)
        print(window.picture()[[0, 63], 0].tolist())  # [[255, 255, 255], [0, 0, 0]]
