"""The kernels of a transformer that decodes one position at a time, and random weights for it.

Sums are f32; weights, keys and values are f16.  ``at`` holds the current position in device memory, so that all steps have
the same arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import quadpy as qp

__all__ = [
    "Layer", "Size", "Weights", "alphabet", "attend", "choose", "embed", "gate", "normalise", "project",
    "project_and_add", "random_weights", "read_out", "remember", "rotate", "score", "unknown",
]  # fmt: skip

alphabet: Final = " abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,.;:!?'()-\n"
unknown: Final = -1  # a character that is not written yet
epsilon = 1e-5
sharpness: Final = 3.0  # of attention and choice, which random weights lack

number = qp.Array0D[qp.i32]
text = qp.Array1D[qp.i32]
vector = qp.Array1D[qp.f32]
table = qp.Array2D[qp.f32]
gains = qp.Array1D[qp.f16]
halves = qp.Array2D[qp.f16]

Halves = npt.NDArray[np.float16]


@qp.kernel
def embed(at: number, characters: text, embedding: halves, x: vector) -> None:
    """The embedding of the current character."""
    for i in x:
        x[i] = embedding[characters[at[None]], i]


@qp.kernel
def normalise(x: vector, gain: gains, y: vector) -> None:
    """RMS norm: y is x divided by its root mean square, times the gain."""
    for i in x:
        total = 0.0
        for j in range(x.shape[0]):
            total += x[j] * x[j]
        y[i] = x[i] / qp.sqrt(total / x.shape[0] + epsilon) * gain[i]


@qp.kernel
def project(x: vector, w: halves, y: vector) -> None:
    """y = x w, summed in f32."""
    for i in y:
        total = 0.0
        for j in range(x.shape[0]):
            total += x[j] * w[j, i]
        y[i] = total


@qp.kernel
def project_and_add(x: vector, w: halves, y: vector) -> None:
    """y += x w, summed in f32."""
    for i in y:
        total = 0.0
        for j in range(x.shape[0]):
            total += x[j] * w[j, i]
        y[i] += total


@qp.kernel
def rotate(at: number, cosines: table, sines: table, x: vector) -> None:
    """Rotary position: in each head, rotate element i and the one half a head later by an angle that grows with the position."""
    for pair in range(x.shape[0] // 2):
        half = cosines.shape[1]
        i = pair % half
        a = pair // half * 2 * half + i
        b = a + half
        c, s = cosines[at[None], i], sines[at[None], i]
        x[a], x[b] = c * x[a] - s * x[b], s * x[a] + c * x[b]


@qp.kernel
def remember(at: number, x: vector, cache: halves) -> None:
    """Store the keys or values of this position."""
    for i in x:
        cache[at[None], i] = qp.f16(x[i])


@qp.kernel
def score(at: number, q: vector, keys: halves, scores: table) -> None:
    """The attention score of each position up to this one, for each head."""
    for head, t in scores:
        if t <= at[None]:
            size = q.shape[0] // scores.shape[0]
            total = 0.0
            for i in range(head * size, (head + 1) * size):
                total += q[i] * keys[t, i]
            scores[head, t] = total / qp.sqrt(qp.f32(size))


@qp.kernel
def attend(at: number, scores: table, values: halves, y: vector) -> None:
    """The mean of the values, weighted by the exponentials of the scores."""
    for i in y:
        head = i // (y.shape[0] // scores.shape[0])
        best = scores[head, 0]
        for t in range(1, at[None] + 1):
            best = qp.max(best, scores[head, t])
        total, weights = 0.0, 0.0
        for t in range(at[None] + 1):
            weight = qp.exp(scores[head, t] - best)
            weights += weight
            total += weight * values[t, i]
        y[i] = total / weights


@qp.kernel
def gate(x: vector, y: vector) -> None:
    """SwiGLU: multiply y by x sigmoid(x)."""
    for i in y:
        y[i] *= x[i] / (1.0 + qp.exp(-x[i]))


@qp.kernel
def read_out(at: number, x: vector, w: halves, logits: table) -> None:
    """The logit of each character as the next one."""
    for c in range(logits.shape[1]):
        total = 0.0
        for j in range(x.shape[0]):
            total += x[j] * w[j, c]
        logits[at[None], c] = total


@qp.kernel
def choose(at: number, logits: table, characters: text) -> None:
    """Write the most likely character next, unless the prompt has one there, and go to the next position."""
    for _ in range(1):  # one thread: loops at the top level are parallel
        here = at[None]
        best, highest = 0, logits[here, 0]
        for c in range(1, logits.shape[1]):
            if logits[here, c] > highest:
                best, highest = c, logits[here, c]
        if here + 1 < characters.shape[0]:
            if characters[here + 1] < 0:
                characters[here + 1] = best
            at[None] = here + 1


@dataclass(frozen=True)
class Size:
    """The size of a model; ``width`` is a multiple of twice ``heads``, ``context`` is the length of the longest text."""

    layers: int = 4
    width: int = 128
    heads: int = 4
    hidden: int = 256
    context: int = 256


@dataclass(frozen=True)
class Layer:
    """Weights as NumPy or quadpy arrays, with a row for each input."""

    attention_gain: Any
    q: Any
    k: Any
    v: Any
    out: Any
    mlp_gain: Any
    gate: Any
    up: Any
    down: Any


@dataclass(frozen=True)
class Weights:
    """All weights of a model."""

    embedding: Any
    layers: tuple[Layer, ...]
    gain: Any
    out: Any


def random_weights(size: Size, seed: int) -> Weights:
    """f16 weights, the same for the same seed."""
    random = np.random.Generator(np.random.Philox(seed))

    def matrix(rows: int, columns: int, scale: float = 1.0) -> Halves:
        made: Halves = (random.standard_normal((rows, columns)) * scale / rows**0.5).astype(np.float16)
        return made

    def gain() -> Halves:
        return (1 + 0.1 * random.standard_normal(size.width)).astype(np.float16)

    d, hidden = size.width, size.hidden
    layers = tuple(
        Layer(
            gain(), matrix(d, d, sharpness), matrix(d, d), matrix(d, d), matrix(d, d),
            gain(), matrix(d, hidden), matrix(d, hidden), matrix(hidden, d),
        )
        for _ in range(size.layers)
    )  # fmt: skip
    embedding = random.standard_normal((len(alphabet), d)).astype(np.float16)
    return Weights(embedding, layers, gain(), matrix(d, len(alphabet), sharpness))
