"""Graphs: the loops over tasks and the sections of graph kernels.  Imports: ``lang.graph_blocks`` only."""

from __future__ import annotations

from quadpy.lang.graph_blocks import do_while, parallel, parallel_context

__all__ = ["do_while", "parallel", "parallel_context"]
