"""How a trace handles ``qp.simt.warp``, Taichi's names for wave operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from quadpy.core.dtypes import Scalar, f32, i32, u32
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.lang.context import Trace
from quadpy.lang.lanes import wave_size
from quadpy.lang.scalars import cast, to_condition
from quadpy.lang.subgroup import SUBGROUP_RULES
from quadpy.lang.values import Value, is_number

Rule: TypeAlias = Callable[..., Any]

_SHUFFLES: Final = {"sync": "shuffle", "up": "shuffle_up", "down": "shuffle_down", "xor": "shuffle_xor"}


def _need_all_lanes(t: Trace, mask: Value, span: Span) -> None:
    """A mask known at compile time must name all lanes; a mask that the kernel computes is assumed to."""
    constant = mask.value if isinstance(mask, ir.Const) else mask
    if isinstance(mask, ir.Cast) and isinstance(mask.operand, ir.Const):
        constant = mask.operand.value
    if not is_number(constant):
        return
    size = wave_size(t)
    everyone = (1 << size) - 1
    if int(constant) & everyone != everyone:
        t.fail_type(
            f"the mask {int(constant):#x} does not name all {size} lanes, and all of them must take part", span,
            "pass all bits, and select the values that count; qp.simt.subgroup needs no masks",
        )  # fmt: skip


def _shuffle(name: str, type: Scalar) -> Rule:
    def run(t: Trace, span: Span, mask: Value, value: Value, offset: Value) -> Value:
        _need_all_lanes(t, mask, span)
        return SUBGROUP_RULES[f"subgroup.{name}"](t, span, cast(t, value, type, span), offset)

    return run


def _vote(name: str) -> Rule:
    def run(t: Trace, span: Span, mask: Value, predicate: Value) -> Value:
        _need_all_lanes(t, mask, span)
        found = SUBGROUP_RULES[f"subgroup.{name}"](t, span, t.build.let(to_condition(t, predicate, span)))
        return cast(t, found, i32, span)

    return run


def _narrow(t: Trace, lanes: Value, span: Span) -> Value:
    """A bit for each lane, as u32 if it is wide enough."""
    return cast(t, lanes, u32, span) if wave_size(t) <= 32 else lanes


def _ballot(t: Trace, span: Span, predicate: Value) -> Value:
    return _narrow(t, SUBGROUP_RULES["subgroup.ballot"](t, span, predicate), span)


def _match(name: str) -> Rule:
    def run(t: Trace, span: Span, mask: Value, value: Value) -> Value:
        _need_all_lanes(t, mask, span)
        return _narrow(t, SUBGROUP_RULES[f"subgroup.{name}"](t, span, value), span)

    return run


def _sync(t: Trace, span: Span, mask: Value) -> None:
    _need_all_lanes(t, mask, span)
    SUBGROUP_RULES["subgroup.sync"](t, span)


WARP_RULES: Final[dict[str, Rule]] = {
    **{f"warp.shfl_{how}_{t}": _shuffle(name, t) for how, name in _SHUFFLES.items() for t in (i32, f32)},
    "warp.all_nonzero": _vote("all_true"),
    "warp.any_nonzero": _vote("any_true"),
    "warp.unique": _vote("all_equal"),
    "warp.ballot": _ballot,
    "warp.match_any": _match("match_any"),
    "warp.match_all": _match("match_all"),
    "warp.active_mask": lambda t, span: _ballot(t, span, True),
    "warp.sync": _sync,
}
