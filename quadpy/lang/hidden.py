"""Arguments that the launch passes where a kernel reads them."""

from __future__ import annotations

from quadpy.core.artifact import HIDDEN
from quadpy.core.dtypes import u64
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace


def hidden_argument(t: Trace, name: str, span: Span) -> ir.ParamRead:
    """The argument ``name``, a row of ``jit.hidden_arguments``."""
    new = ir.ScalarParam(f"{HIDDEN}{name}", u64, span=t.frames[0].source.span)
    param = t.signature.hidden.setdefault(name, new)
    return ir.ParamRead(param.name, param.type, span=span)
