"""Inverse roots without the scaling of subnormal numbers, on processors whose square roots take these.

The library scales them for GPUs, whose approximations do not take them.  Scaling by an even power of 2 changes no bit of
the significand, so the results are the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children

_UNSCALED: Final = {f"rsqrt.{t}": f"inverse_root.{t}" for t in ("f32", "f64")}


def unscaled_roots(kernel: ir.Kernel) -> ir.Kernel:
    """``kernel`` with calls of ``inverse_root``, which ``rsqrt`` calls itself."""

    def visit(node: ir.Node) -> ir.Node:
        node = map_children(node, visit)
        if isinstance(node, ir.Call) and node.function in _UNSCALED:
            return replace(node, function=_UNSCALED[node.function])
        return node

    if kernel.fast_math or not any(f.name in _UNSCALED for f in kernel.functions):
        return kernel  # approximations replace ``rsqrt`` itself
    return map_children(kernel, visit)
