"""Random numbers: Philox over (iteration, draw, stream), keyed by seed and launch."""

from __future__ import annotations

from quadpy.core.dtypes import Scalar, bf16, f16, f32, f64, u1, u32, u64
from quadpy.core.source import Span
from quadpy.ir import nodes as ir
from quadpy.ir.build import binary
from quadpy.lang.context import Trace
from quadpy.lang.frames import MutableVar
from quadpy.lang.hidden import hidden_argument
from quadpy.lang.operators import scalar_bit_cast
from quadpy.lang.promotion import literal
from quadpy.lang.scalars import call_library, cast, library_results, to_scalar
from quadpy.lang.variables import read_variable


def random_number(t: Trace, kind: str, type: Scalar, span: Span) -> ir.Expr:
    """The next number of this iteration: Philox over (iteration, draw, stream) keyed by seed and launch."""
    if t.random.draws is None:
        t.random.draws = t.build.var("draws", u32, mutable=True)
    draws = MutableVar((t.random.draws,), (), not t.in_parallel, span)
    draw = t.build.let(to_scalar(t, read_variable(t, draws, span), span), "draw")
    t.build.assign(t.random.draws, draw + 1, span)
    position = t.build.let(t.loop.position if t.loop else literal(0, u64, span))
    seed, launch = hidden_argument(t, "seed", span), hidden_argument(t, "launch", span)
    task = literal(t.random.streams if t.in_parallel else t.random.serial_stream, u32, span)
    counter = (cast(t, position, u32, span), _high_word(t, position, span), draw, task)
    key = (_mix_pass(t, _mix_seed(t, seed, launch, span), span), cast(t, launch, u32, span))
    words = library_results(t, "philox", (*counter, *key), span)
    return _number_from_words(t, kind, type, words, span)


def _leading_bits(word: ir.Expr, type: Scalar, span: Span) -> ir.Expr:
    """As many bits as ``type`` holds below 1 exactly: with more, the largest numbers would round to 1."""
    mask = {f16: 0xFFE00000, bf16: 0xFF000000}.get(type)
    return word if mask is None else word & mask


def _high_word(t: Trace, value: ir.Expr, span: Span) -> ir.Expr:
    return cast(t, binary(ir.BinOp.USHR, value, 32), u32, span)


def _mix_seed(t: Trace, seed: ir.Expr, launch: ir.Expr, span: Span) -> ir.Expr:
    """The low word of the seed, with the high words of seed and launch folded in."""
    return t.build.let(cast(t, seed, u32, span) ^ (_high_word(t, seed, span) ^ _high_word(t, launch, span)))


def _mix_pass(t: Trace, key: ir.Expr, span: Span) -> ir.Expr:
    """``key``, another one in each iteration of a do-while loop, where the draws of parallel loops start again."""
    if not (t.in_parallel and t.tasks.repeats):
        return key
    t.random.passes = t.random.passes or t.build.var("passes", u32, mutable=True)
    t.random.drew_in_loop = True
    passes = MutableVar((t.random.passes,), (), shared=True, span=span)
    count = to_scalar(t, read_variable(t, passes, span), span)
    return t.build.let(key ^ count * 0x9E3779B9)


def _number_from_words(t: Trace, kind: str, type: Scalar, words: tuple[ir.Expr, ...], span: Span) -> ir.Expr:
    if kind == "normal" or type.is_float:
        wide = f64 if type == f64 else f32
        if kind == "normal":
            used = words if wide == f64 else words[:2]
        else:
            used = words[:2] if wide == f64 else (_leading_bits(words[0], type, span),)
        return cast(t, call_library(t, f"{kind}_{wide.name}", used, span), type, span)
    if type.bits == 64:
        low, high = (ir.Cast(w, u64, span=span) for w in words[:2])
        both = low | high << 32
        return scalar_bit_cast(t, both, type, span)
    if type == u1:
        return cast(t, words[0] & 1, u1, span)
    return scalar_bit_cast(t, words[0], type, span) if type.bits == 32 else cast(t, words[0], type, span)
