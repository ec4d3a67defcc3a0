"""The markers that shape the order of a kernel's tasks; ``lang.flows`` gives them their meaning."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics import BUILTINS, Builtin
from quadpy.intrinsics.rows import Syntax

stream_parallel: Final = BUILTINS["stream_parallel"]
checkpoint: Final = BUILTINS["checkpoint"]
do_while: Final = BUILTINS["graph.do_while"]
parallel: Final = BUILTINS["graph.parallel"]
parallel_context: Final = BUILTINS["graph.parallel_context"]


def _form(marker: Builtin) -> str:
    assert isinstance(marker.row.lowering, Syntax)
    return marker.row.lowering.form


FORMS: Final = {
    marker.__name__: _form(marker) for marker in (stream_parallel, do_while, parallel, parallel_context, checkpoint)
}
"""How each is written; there is no other way."""
