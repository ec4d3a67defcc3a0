"""Every function and operation of the language as one row.

Everything that depends on the list of functions is made from the rows: the names of ``qp`` and ``qp.simt`` and their
stubs, the trace's dispatch, the verifier, the lowering's dispatch, the reference page and the tests.
"""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics import atomics, block, control, math, random
from quadpy.intrinsics.builtin import Builtin
from quadpy.intrinsics.rows import Row

__all__ = ["BUILTINS", "BY_NAME", "GROUPS", "INSTRUCTIONS", "ROWS", "Builtin", "namespace"]

GROUPS: Final[dict[str, tuple[Row, ...]]] = {
    **math.GROUPS, **atomics.GROUPS, **random.GROUPS, **control.GROUPS, **block.GROUPS,
}  # fmt: skip
"""What users can name, by the headings of the reference page."""
BUILTINS: Final = {row.name: Builtin(row) for rows in GROUPS.values() for row in rows}
ROWS: Final = (*(builtin.row for builtin in BUILTINS.values()), *math.INTERNAL, *random.INTERNAL)
BY_NAME: Final = {row.name: row for row in ROWS}
INSTRUCTIONS: Final = {row.name: row for row in ROWS if row.is_instruction}
"""The rows that an ``Intrinsic`` of the IR may name."""


def namespace(prefix: str) -> dict[str, Builtin]:
    """The builtins whose names begin with ``prefix`` and a dot, by what follows; for "", those without a dot."""
    parts = ((*name.rpartition("."), builtin) for name, builtin in BUILTINS.items())
    return {last: builtin for first, _, last, builtin in parts if first == prefix}
