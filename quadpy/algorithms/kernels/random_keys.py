"""Random keys, each different from all others."""

from __future__ import annotations

import quadpy as qp

Flat = qp.types.ndarray(ndim=1)


@qp.func
def mixed(word):
    """The output function of SplitMix64 (Steele, Lea and Flood, 2014), which maps no two words to the same."""
    word = (word ^ (word >> 30)) * qp.u64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> 27)) * qp.u64(0x94D049BB133111EB)
    return word ^ (word >> 31)


@qp.kernel
def random_keys(keys: Flat, seed: qp.u64):
    """The sequence of SplitMix64 that begins at a state made from ``seed``."""
    for i in keys:
        keys[i] = mixed(mixed(seed) + (qp.u64(i) + 1) * qp.u64(0x9E3779B97F4A7C15))
