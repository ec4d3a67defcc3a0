"""The nodes of the IR: typed, frozen, structured, each with its place in the user's file.

Expressions are pure and scalar: the front end takes vectors apart (docs/adr/0001).  Everything that reads or writes
memory is a statement, so the order of statements is the order of effects.  A kernel is a sequence of tasks, each of
which is one launch; what crosses from task to task lives in numbered slots of the kernel's scratch memory, the first
of which hold its results.
"""

# ruff: noqa: F403 - this module gathers the nodes under one name, and the parts name theirs in __all__
from quadpy.ir import expressions, kernels, marks, node, statements
from quadpy.ir.expressions import *
from quadpy.ir.kernels import *
from quadpy.ir.marks import *
from quadpy.ir.node import *
from quadpy.ir.statements import *

__all__: list[str] = []
__all__ += expressions.__all__
__all__ += kernels.__all__
__all__ += marks.__all__
__all__ += node.__all__
__all__ += statements.__all__
