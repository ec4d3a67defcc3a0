"""What a kernel writes to shape the order of its tasks: markers, to which ``lang.flows`` gives their meaning.

Owns: ``stream_parallel``, ``do_while``, ``parallel``, ``parallel_context``.  Imports: ``lang.builtins`` only.
"""

from __future__ import annotations

from typing import Final

from quadpy.lang.builtins import Builtin

__all__ = ["FORMS", "do_while", "parallel", "parallel_context", "stream_parallel"]

stream_parallel = Builtin(
    "stream_parallel",
    "``with qp.stream_parallel():`` at the top level of a kernel: adjacent blocks run at once, on streams of their own.",
)
do_while = Builtin(
    "graph.do_while",
    "``while qp.graph.do_while(cond):`` in a graph kernel: the body, and again while element 0 of ``cond`` is not 0.",
)
parallel = Builtin(
    "graph.parallel",
    "``with qp.graph.parallel():`` in a graph kernel: adjacent blocks run at once.",
)
parallel_context = Builtin(
    "graph.parallel_context",
    "``with qp.graph.parallel_context():`` around ``parallel()`` blocks: they run at once, and are joined at its end.",
)

FORMS: Final = {
    "stream_parallel": "with qp.stream_parallel():",
    "graph.do_while": "while qp.graph.do_while(cond):",
    "graph.parallel": "with qp.graph.parallel():",
    "graph.parallel_context": "with qp.graph.parallel_context():",
}
"""How each is written; there is no other way."""
