"""Calling functions of the kernel language: inlined ones, the math library, random numbers.

Owns: Functions.  Imports: ``ir``, ``lang``, ``mathlib`` and leaves only.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from quadpy.artifact import HIDDEN
from quadpy.dtypes import Scalar, bf16, f16, f32, f64, u1, u32, u64
from quadpy.errors import CompilationError, KernelSyntaxError
from quadpy.ir.nodes import Binary, BinOp, Call, CallMany, Cast, Const, Expr, Function, ParamRead, ScalarParam, VarRead
from quadpy.lang.decorators import Func, Template
from quadpy.lang.dependencies import MISSING
from quadpy.lang.library import library_function, required
from quadpy.lang.promotion import literal
from quadpy.lang.returns import Returns
from quadpy.lang.source import FunctionSource
from quadpy.lang.state import Frame, MutableVar
from quadpy.lang.values import Value, Vec, is_number, is_runtime
from quadpy.source import Span

__all__ = ["Functions"]


_STEPS_OF_A_CALL: Final = 50
"""What a call costs besides the body of the function."""


class Functions(Returns):
    """Calls of functions whose text the compiler reads."""

    def inline(self, func: Func, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        """The body of ``func``, here, with its parameters bound to ``args``."""
        source = func.source
        self.effort.take(_STEPS_OF_A_CALL)
        if any(frame.source is source for frame in self.frames):
            raise KernelSyntaxError(
                f"{source.name} calls itself: functions of kernels are inlined and cannot recurse", span,
                hint="rewrite the recursion as a loop",
            )  # fmt: skip
        tree = source.tree
        frame = Frame(source, {}, self.bound_once(tree.body, source), label=f"{source.name}")
        bound = self.bind_arguments(source, args, kwargs, span)
        self.frames.append(frame)
        try:
            stored = self.stored(tree.body, source)
            self.check_templates(source, bound, stored, span)
            self.enter_parameters(bound, stored, span)
            with self.build.block() as stmts:
                ends = self.block(tree.body)
        except CompilationError as error:
            if hasattr(error, "add_note"):  # from Python 3.11 on
                error.add_note(f"in {source.name}, called at {span}")
            raise
        finally:
            self.frames.pop()
        return self.leave(frame, stmts, span, ends=ends)

    def bind_arguments(
        self, source: FunctionSource, args: list[Value], kwargs: dict[str, Value], span: Span
    ) -> dict[str, Value]:
        """Parameter names with their values, cast where the parameter is annotated with a type."""
        try:
            bound = source.signature.bind(*args, **kwargs)
        except TypeError as exc:
            self.fail_type(f"{source.name}: {exc}", span)
        given = set(bound.arguments)
        bound.apply_defaults()
        values: dict[str, Value] = {}
        for name, value in bound.arguments.items():
            if name not in given and (default := self.deps.default(source, name)) is not MISSING:
                value = default
            annotation = self.deps.annotation(source, name)
            values[name] = self.annotated(self.import_value(value), annotation, span, f"{source.name}: {name}")
        return values

    def check_templates(self, source: FunctionSource, bound: dict[str, Value], stored: Any, span: Span) -> None:
        """A template parameter is a value of compile time; a change of a variable would stay in the function, unseen.

        Raises:
            KernelTypeError: the function assigns a template parameter that stands for a value of run time.
        """
        for name in sorted(stored & bound.keys()):
            value = bound[name]
            scalars = value.elems if isinstance(value, Vec) else (value,) if is_runtime(value) else ()
            known = all(isinstance(scalar, Const) for scalar in scalars)
            if not known and isinstance(self.deps.annotation(source, name), Template):
                self.fail_type(
                    f"{source.name} changes its template parameter {name!r}, which is no reference to a variable", span,
                    f"return the new value, and assign it here: {name} = {source.name}(...)",
                )  # fmt: skip

    def enter_parameters(self, bound: dict[str, Value], stored: Any, span: Span) -> None:
        """Binds parameters in the new frame; those that the body assigns become variables."""
        for name, value in bound.items():
            if isinstance(value, (list, tuple)) and value and all(is_runtime(v) or is_number(v) for v in value):
                value = tuple(self.build.freeze(v) if is_runtime(v) else v for v in value)
            if not (name in stored and (is_runtime(value) or is_number(value) or isinstance(value, Vec))):
                if is_runtime(value):
                    value = self.build.let(value, name)
                elif isinstance(value, Vec):
                    value = Vec(value.shape, tuple(self.build.let(e, name) for e in value.elems))
                self.frame.env[name] = value
                continue
            self.declare(name, value, span)

    def declare(self, name: str, value: Value, span: Span) -> None:
        """A new variable called ``name`` that starts as ``value``."""
        elems = value.elems if isinstance(value, Vec) else (self.scalar(value, span),)
        variables = tuple(self.build.var(name, e.type, mutable=True) for e in elems)
        for var, elem in zip(variables, elems, strict=True):
            self.build.assign(var, elem, span)
        shape = value.shape if isinstance(value, Vec) else None
        self.frame.env[name] = MutableVar(variables, shape, not self.in_parallel, span)
        self.frame.unset.discard(name)

    def assign_target(self, target: ast.expr, value: Value, span: Span) -> None:
        raise NotImplementedError

    def library(self, name: str, args: tuple[Expr, ...], span: Span) -> Value:
        """A function of the math library, for operands of one float type; 16-bit floats go through f32."""
        if args[0].type in (f16, bf16):
            return self.in_f32(lambda *wide: self.library(name, wide, span), *args, span=span)
        function = library_function(name, tuple(a.type for a in args))
        if function is None:
            self.fail_type(f"{name} is not defined for {', '.join(a.type.name for a in args)}", span)
        return self.call_function(function, args, span)

    def call_function(self, function: Function, args: tuple[Expr, ...], span: Span) -> Value:
        """A call of a function that the kernel carries with it; several results make a tuple."""
        for needed in required(function):
            self.functions.setdefault(needed.name, needed)
        if len(function.results) == 1:
            return Call(function.name, args, function.results[0], span=span)
        results = tuple(self.build.var("result", type) for type in function.results)
        self.build.emit(CallMany(results, function.name, args, span=span))
        return tuple(VarRead(var, span=span) for var in results)

    def random(self, kind: str, type: Scalar, span: Span) -> Value:
        """The next number of this iteration: Philox over (iteration, draw, stream) keyed by seed and launch."""
        if self.draws is None:
            self.draws = self.build.var("draws", u32, mutable=True)
        draw: Expr = self.read(MutableVar((self.draws,), None, not self.in_parallel, span), span)
        draw = self.build.let(draw, "draw")
        self.build.assign(self.draws, Binary(BinOp.ADD, draw, literal(1, u32, span), u32, span=span), span)
        position = self.build.let(self.loop_position or literal(0, u64, span))
        seed, launch = self.hidden_argument("seed", span), self.hidden_argument("launch", span)
        task = literal(self.streams if self.in_parallel else self.serial_stream, u32, span)
        counter = (self.cast(position, u32, span), self.high(position, span), draw, task)
        key = (self.passed(self.mixed(seed, launch, span), span), self.cast(launch, u32, span))
        words = self.library("philox", (*counter, *key), span)
        return self.random_value(kind, type, words, span)

    def hidden_argument(self, name: str, span: Span) -> Expr:
        """The argument ``name``, a row of ``jit.hidden_arguments``, which the launch passes where a kernel reads it."""
        param = self.hidden.setdefault(name, ScalarParam(f"{HIDDEN}{name}", u64, span=self.frames[0].source.span))
        return ParamRead(param.name, param.type, span=span)

    def leading_bits(self, word: Expr, type: Scalar, span: Span) -> Expr:
        """As many bits as ``type`` holds below 1 exactly: with more, the greatest numbers would round to 1."""
        mask = {f16: 0xFFE00000, bf16: 0xFF000000}.get(type)
        return word if mask is None else Binary(BinOp.AND, word, literal(mask, u32, span), u32, span=span)

    def high(self, value: Expr, span: Span) -> Expr:
        return self.cast(Binary(BinOp.USHR, value, literal(32, u64, span), u64, span=span), u32, span)

    def mixed(self, seed: Expr, launch: Expr, span: Span) -> Expr:
        """The low word of the seed, with the high words of seed and launch folded in."""
        high = Binary(BinOp.XOR, self.high(seed, span), self.high(launch, span), u32, span=span)
        return self.build.let(Binary(BinOp.XOR, self.cast(seed, u32, span), high, u32, span=span))

    def passed(self, key: Expr, span: Span) -> Expr:
        """``key``, another one in each iteration of a do-while loop, where the draws of parallel loops start anew."""
        if not (self.in_parallel and self.repeats):
            return key
        self.passes = self.passes or self.build.var("passes", u32, mutable=True)
        self.drew_in_loop = True
        count = self.read(MutableVar((self.passes,), None, shared=True, span=span), span)
        assert is_runtime(count)
        spread = Binary(BinOp.MUL, count, literal(0x9E3779B9, u32, span), u32, span=span)
        return self.build.let(Binary(BinOp.XOR, key, spread, u32, span=span))

    def random_value(self, kind: str, type: Scalar, words: Sequence[Expr], span: Span) -> Value:
        if kind == "normal":
            wide = f64 if type == f64 else f32
            used = words if wide == f64 else words[:2]
            return self.cast(self.library(f"normal_{wide.name}", tuple(used), span), type, span)
        if type.is_float:
            wide = f64 if type == f64 else f32
            used = words[:2] if wide == f64 else (self.leading_bits(words[0], type, span),)
            return self.cast(self.library(f"uniform_{wide.name}", tuple(used), span), type, span)
        if type.bits == 64:
            low, high = (Cast(w, u64, span=span) for w in words[:2])
            both = Binary(
                BinOp.OR, low, Binary(BinOp.SHL, high, literal(32, u64, span), u64, span=span), u64, span=span
            )
            return self.bit_cast(both, type, span)
        if type == u1:
            return self.cast(Binary(BinOp.AND, words[0], literal(1, u32, span), u32, span=span), u1, span)
        return self.bit_cast(words[0], type, span) if type.bits == 32 else self.cast(words[0], type, span)
