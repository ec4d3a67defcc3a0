"""Gradient descent for the examples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Adam"]

Numbers = npt.NDArray[np.float64]


class Adam:
    """Steps of about ``rate`` in each number, which shrink by ``decay`` (D. P. Kingma and J. Ba, "Adam", ICLR 2015)."""

    def __init__(self, rate: float, decay: float = 1.0) -> None:
        self.rate, self.decay, self.rounds = rate, decay, 0
        self.mean: Numbers | float = 0.0
        self.square: Numbers | float = 0.0

    def step(self, numbers: Numbers, gradient: Numbers) -> Numbers:
        """The numbers after a step against their gradient."""
        self.rounds += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.99 * self.square + 0.01 * gradient**2
        mean, square = self.mean / (1 - 0.9**self.rounds), self.square / (1 - 0.99**self.rounds)
        self.rate *= self.decay
        return numbers - self.rate / self.decay * mean / (np.sqrt(square) + 1e-12)
