"""What operations of a wave give, by the rules of their documentation, in NumPy: arrays of shape (waves, lanes)."""

from __future__ import annotations

import numpy as np

COMBINE = {
    "add": np.add, "mul": np.multiply, "min": np.fmin, "max": np.fmax, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def combined(op, a, b):
    """16-bit floats round after each operation, as NumPy's do."""
    with np.errstate(all="ignore"):
        return COMBINE[op](a, b).astype(a.dtype)


def reduce(op, x):
    """Neighbours, then their results: a balanced tree."""
    lanes = x.shape[1]
    while x.shape[1] > 1:
        x = combined(op, x[:, ::2], x[:, 1::2])
    return np.repeat(x, lanes, axis=1)


def inclusive(op, x):
    """In rows of 16 by doubling distances; then what is below each row."""
    x, lane = x.copy(), np.arange(x.shape[1])
    for d in (1, 2, 4, 8):
        has = lane % 16 >= d
        x[:, has] = combined(op, x[:, has], x[:, lane[has] - d])
    for width in (16, 32)[: x.shape[1] // 32]:
        has = lane & width > 0
        last = lane[has] // (2 * width) * 2 * width + width - 1
        x[:, has] = combined(op, x[:, has], x[:, last])
    return x


def begins(op, dtype):
    """What an exclusive scan gives in lane 0."""
    kind = np.dtype(dtype).kind
    if op in ("min", "max"):
        if kind == "f":
            return np.inf if op == "min" else -np.inf
        return getattr(np.iinfo(dtype), "max" if op == "min" else "min")
    if op == "and":
        return True if kind == "b" else np.array(-1 if kind == "i" else np.iinfo(dtype).max, dtype)
    return {"mul": 1}.get(op, 0)


def exclusive(op, x):
    first = np.full((x.shape[0], 1), begins(op, x.dtype), x.dtype)
    return np.concatenate([first, inclusive(op, x)[:, :-1]], axis=1)


def shuffle(x, lane):
    return np.take_along_axis(x, lane % x.shape[1], axis=1)


def shuffle_up(x, distance):
    own = np.arange(x.shape[1])
    there = own - distance % x.shape[1]
    return np.take_along_axis(x, np.where(there >= 0, there, own), axis=1)


def shuffle_down(x, distance):
    own = np.arange(x.shape[1])
    there = own + distance % x.shape[1]
    return np.take_along_axis(x, np.where(there < x.shape[1], there, own), axis=1)


def shuffle_xor(x, mask):
    return np.take_along_axis(x, np.arange(x.shape[1]) ^ (mask % x.shape[1]), axis=1)


def bits_of(truths):
    """A u64 for each wave, with the bit of each lane that holds."""
    weights = np.uint64(1) << np.arange(truths.shape[1], dtype=np.uint64)
    return np.where(truths, weights, np.uint64(0)).sum(axis=1, dtype=np.uint64)


def ballot(truths):
    return np.repeat(bits_of(truths)[:, None], truths.shape[1], axis=1)


def match_any(x):
    words = x.view(f"u{x.itemsize}") if x.dtype.kind == "f" else x
    same = words[:, :, None] == words[:, None, :]
    return np.stack([bits_of(same[:, lane]) for lane in range(x.shape[1])], axis=1)
