"""Calls: who is called, and what it means.  Owns: Calls.  Imports: ``ir``, ``lang``, ``mathlib`` and leaves only."""

from __future__ import annotations

import ast
import builtins
import contextlib
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from quadpy.dtypes import BY_NAME, Scalar
from quadpy.ir.nodes import Atomic, AtomicOp, Block, Expr, If, Unary, UnOp
from quadpy.lang.builtins import BUILTINS, Builtin
from quadpy.lang.containers import AT_COMPILE_TIME
from quadpy.lang.decorators import Func
from quadpy.lang.dependencies import MISSING
from quadpy.lang.functions import Functions
from quadpy.lang.intrinsics import RULES
from quadpy.lang.library import traced
from quadpy.lang.names import base_name
from quadpy.lang.operators import saturated
from quadpy.lang.promotion import literal
from quadpy.lang.ranges import Grouped, NdRange
from quadpy.lang.state import Changes, ChosenPart, MutableVar
from quadpy.lang.values import (
    ArrayRef,
    BoundMethod,
    ElementRef,
    Value,
    Vec,
    holds_runtime,
    is_number,
    is_runtime,
    shape_text,
)
from quadpy.lang.vecmethods import METHODS
from quadpy.mathlib import ops
from quadpy.mathlib.library import LibraryFunction
from quadpy.source import Span

__all__ = ["Calls"]

_LOCAL_OPERATORS: Final[dict[AtomicOp, type[ast.operator]]] = {
    AtomicOp.ADD: ast.Add, AtomicOp.SUB: ast.Sub, AtomicOp.MUL: ast.Mult, AtomicOp.AND: ast.BitAnd,
    AtomicOp.OR: ast.BitOr, AtomicOp.XOR: ast.BitXor,
}  # fmt: skip
ATOMICS: Final = {f"atomic_{op.value}": op for op in AtomicOp}
# What Python's own functions mean in a kernel, by the name of the builtin that does the same.
_PYTHON_NAMES: Final[dict[Any, str]] = {
    builtins.min: "min", builtins.max: "max", builtins.abs: "abs", builtins.pow: "pow", builtins.round: "round",
    **{getattr(math, name): name for name in BUILTINS if callable(getattr(math, name, None))},
}  # fmt: skip
_OPS_UNARY: Final = {ops.sqrt: UnOp.SQRT, ops.floor: UnOp.FLOOR, ops.rint: UnOp.RINT, ops.trunc: UnOp.TRUNC,
                     ops.abs_: UnOp.ABS}  # fmt: skip


class Calls(Functions):
    """Calls of builtins, types, functions and methods."""

    def expr_Call(self, node: ast.Call) -> Value:
        span, fn = self.span(node), self.expr(node.func)
        if isinstance(fn, Builtin) and fn.__name__ in ATOMICS:
            return self.atomic_call(ATOMICS[fn.__name__], node)
        if (fn is getattr or fn is hasattr) and self.takes_a_name(fn, node):
            return self.attribute_by_name(fn, node, span)
        args = self.items(node.args)
        kwargs: dict[str, Value] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.fail_syntax("** is not part of the kernel language", span)
            kwargs[keyword.arg] = self.expr(keyword.value)
        return self.call_python(fn, args, kwargs, span)

    @staticmethod
    def takes_a_name(fn: Any, node: ast.Call) -> bool:
        """Whether the call has the form of ``getattr(a, "b")``, ``getattr(a, "b", c)`` or ``hasattr(a, "b")``."""
        plain = not node.keywords and not any(isinstance(arg, ast.Starred) for arg in node.args)
        return plain and len(node.args) in ((2, 3) if fn is getattr else (2,))

    def attribute_by_name(self, fn: Any, node: ast.Call, span: Span) -> Value:
        """``getattr`` and ``hasattr``, which ask no more of an object than ``a.b`` does."""
        value, (name, *default) = self.chained(node.args[0]), self.items(node.args[1:])
        if holds_runtime(value) or type(name) is not str:
            self.deps.uses(value)
            return self.call_python(fn, [value, name, *default], {}, span)
        found = self.deps.attribute(value, name)
        if fn is hasattr:
            return found is not MISSING
        if found is MISSING:
            return default[0] if default else self.attribute(value, name, span)
        self.deps.uses(found)
        return self.import_value(found)

    def call_python(self, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        """Calls whatever ``fn`` turned out to be."""
        if isinstance(fn, Builtin):
            return self.call_builtin(fn.__name__, args, kwargs, span)
        if isinstance(fn, Func):
            return self.inline(fn, args, kwargs, span)
        if isinstance(fn, BoundMethod):
            return self.call_method(fn, args, kwargs, span)
        if isinstance(fn, Scalar) or fn in (int, float, bool):
            return self.call_type(fn, args, span)
        if isinstance(fn, LibraryFunction):
            return self.call_function(traced(fn), self.library_args(fn, args, span), span)
        if getattr(fn, "__quadpy_kernel__", False):
            self.fail_syntax("a kernel cannot call a kernel", span, "make the callee a @qp.func")
        if self.is_hashable(fn) and fn in _PYTHON_NAMES:
            return self.call_pythons_own(fn, args, kwargs, span)
        if self.is_library and fn in (*_OPS_UNARY, ops.select, ops.bitcast, ops.copysign):
            return self.call_op(fn, args, span)
        made = self.construct(fn, args, kwargs, span)
        return made if made is not None else self.call_at_compile_time(fn, args, kwargs, span)

    def call_pythons_own(self, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        """``min``, ``math.sin``, …: Python's own over compile-time numbers, where it has a result for them."""
        items = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        own = not kwargs and len(items) > 0 and all(map(is_number, items)) and _defined_here(fn, len(args))
        if not own and not holds_runtime(args) and not holds_runtime(kwargs):
            with contextlib.suppress(ValueError, ArithmeticError):
                return self.python_call(fn, args, kwargs, span)
        return self.call_builtin(_PYTHON_NAMES[fn], args, kwargs, span)

    @staticmethod
    def is_hashable(fn: Any) -> bool:
        return type(fn).__hash__ is not None

    def call_builtin(self, name: str, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        if name == "ndrange":
            return NdRange.of(args, span)
        if name == "grouped":
            if len(args) != 1:
                self.fail_type(f"grouped takes 1 argument, not {len(args)}", span)
            return Grouped(args[0])
        if name not in RULES:
            self.fail_syntax(f"{name} stands on a line of its own", span)
        try:
            return RULES[name](self, span, *args, **kwargs)
        except TypeError as exc:
            if exc.__traceback__ is not None and exc.__traceback__.tb_next is None:
                doc = BUILTINS[name].__doc__ if name in BUILTINS else ""
                self.fail_type(f"{name}: {str(exc).partition('() ')[2] or exc}", span, doc or "")
            raise

    def call_method(self, method: BoundMethod, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        if isinstance(method.receiver, ArrayRef):
            self.fail_syntax(f"arrays have no {method.name}() inside a kernel", span, "call it from Python, outside")
        try:
            return METHODS[method.name](self, method.receiver, span, *args, **kwargs)
        except TypeError as exc:
            if exc.__traceback__ is not None and exc.__traceback__.tb_next is None:
                self.fail_type(f"{method.name}: wrong arguments", span)
            raise

    def call_type(self, fn: Any, args: list[Value], span: Span) -> Value:
        """``qp.f32(x)``, ``int(x)``: a cast; of a compile-time number still a literal of that type."""
        type = self.scalar_type(fn)
        if len(args) != 1:
            self.fail_type(f"a cast takes one value, not {len(args)}", span)
        value = args[0]
        if isinstance(value, (Vec, list, tuple)):
            return self.vector(value, span, type)
        if fn in (int, float, bool) and is_number(value):
            if fn is int and (value != value or abs(value) == math.inf):
                return saturated(value, type)
            return self.python_call(fn, [value], {}, span)
        return self.cast(value, type, span)

    def construct(self, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value | None:
        """``qp.Vector([…])``, ``qp.Matrix.rows([…])`` and calls of vector types; None for all else."""
        dtype = kwargs.get("dt", kwargs.get("dtype"))
        kind = getattr(fn, "__quadpy_constructor__", None)
        if kind is None or (kind == "type" and isinstance(fn, type)):  # qp.types.vector itself makes a type
            return None
        if kind == "type":  # a vector or matrix type: its shape and scalar are given
            flat = self.leaves(args[0] if len(args) == 1 else args)
            shape = fn.element_shape
            count = math.prod(shape)
            if len(flat) not in (1, count):
                self.fail_type(f"{len(flat)} numbers for {count} components", span)
            return self.vec_of(flat * (count if len(flat) == 1 else 1), shape, span, self.scalar_type(fn.dtype))
        if not 1 <= len(args) <= 2:
            self.fail_type(f"a {fn.__name__} is made of one list, not of {len(args)} arguments", span,
                           "write qp.Vector([x, y]) or qp.Matrix([[a, b], [c, d]])")  # fmt: skip
        if len(args) > 1:
            dtype = args[1]
        rows = self.vector(args[0], span, self.scalar_type(dtype))
        return METHODS["transpose"](self, rows, span) if kind == "cols" else rows

    def call_at_compile_time(self, fn: Any, args: list[Value], kwargs: dict[str, Value], span: Span) -> Value:
        if fn is builtins.len and len(args) == 1 and isinstance(args[0], Vec):
            return args[0].shape[0]
        if fn is builtins.len and len(args) == 1 and isinstance(args[0], ArrayRef):
            if not args[0].type.ndim:
                self.fail_type("an array of no axes has no length", span, "its one element is x[None]")
            return self.extent(args[0], 0, span)
        if getattr(fn, "__quadpy_expand__", False):
            return self.inline(_expanded(fn), args, kwargs, span)
        if fn in (builtins.any, builtins.all) and len(args) == 1:
            whole = isinstance(args[0], Vec)
            return METHODS[fn.__name__](self, args[0], span) if whole else self.truth_of_items(fn, args[0], span)
        if fn is builtins.print:
            self.fail_syntax(
                "print is not part of the kernel language yet", span, "return the value and print it outside"
            )
        if fn is range and holds_runtime(args):
            self.fail_syntax("a run-time range stands in a for statement only", span)
        if fn in AT_COMPILE_TIME or (getattr(fn, "__module__", None) or "").partition(".")[0] == "quadpy":
            if fn not in AT_COMPILE_TIME:  # makes vectors, of as many components as its numbers say
                self.effort.take(math.prod(a for a in [*args, *kwargs.values()] if isinstance(a, int) and a > 0))
            try:
                return self.import_value(self.on_structure(fn, args, kwargs, span))
            except (ValueError, ArithmeticError) as exc:
                self.fail_type(str(exc), span)
        if isinstance(fn, FunctionType):
            self.fail_syntax(f"{fn.__name__} is a plain Python function", span, "decorate it with @qp.func")
        name = getattr(fn, "__name__", "")
        self.fail_type(f"{name or shape_text(fn)} cannot be called inside a kernel", span,
                       f"there is qp.{name}" if name in BUILTINS else "")  # fmt: skip

    def library_args(self, fn: LibraryFunction, args: list[Value], span: Span) -> tuple[Expr, ...]:
        return tuple(self.convert(a, type, span) for a, (_, type) in zip(args, fn.params, strict=True))

    def call_op(self, fn: Callable[..., Any], args: list[Value], span: Span) -> Value:
        """A primitive of ``mathlib.ops``."""
        if fn is ops.select:
            return self.select(args[0], args[1], args[2], span)
        if fn is ops.bitcast:
            return self.bit_cast(args[0], args[1], span)
        if fn is ops.copysign:
            return RULES["copysign"](self, span, *args)
        x = self.scalar(args[0], span)
        return Unary(_OPS_UNARY[fn], x, x.type, span=span)

    def integer_power(self, base: Expr, exponent: Expr, span: Span) -> Value:
        from quadpy.lang.powers import power_of_float, power_of_integer

        return self.inline(power_of_float if base.type.is_float else power_of_integer, [base, exponent], {}, span)

    def atomic_call(self, op: AtomicOp, node: ast.Call) -> Value:
        """``atomic_add(x[i], v)``: the first argument is a place."""
        span = self.span(node)
        wanted = 3 if op is AtomicOp.CAS else 2
        if len(node.args) != wanted or node.keywords:
            self.fail_type(f"atomic_{op.value} takes {wanted} arguments", span)
        target = self.place(node.args[0])
        local = self.changed_part(op, node.args[0]) if target is None else None
        values = [self.expr(arg) for arg in node.args[1:]]
        if local is not None:
            return self.atomic_on_local(op, local, values, span)
        assert target is not None
        return self.atomic(op, target, values[-1], span, expected=values[0] if op is AtomicOp.CAS else None)

    def changed_part(self, op: AtomicOp, target: ast.expr) -> tuple[str, MutableVar | ChosenPart]:
        """The variable of this thread that ``target`` names, or the part of it; and its name.

        Raises:
            Changes: the name is not yet known to change.
        """
        name = target.id if isinstance(target, ast.Name) else base_name(target)
        if name is None:
            self.fail_type(f"atomic_{op.value} needs a place that can be assigned", self.span(target))
        key, bound = (self.frame.source.code, name), self.frame.env.get(name)
        if key not in self.changing and (is_number(bound) or is_runtime(bound) or isinstance(bound, (Vec, MutableVar))):
            raise Changes(key)
        if not isinstance(target, ast.Name):
            return name, self.named_part(name, target)
        self.lookup(name, self.span(target))
        if not isinstance(bound, MutableVar):
            self.fail_type(f"atomic_{op.value} needs an element of an array or a variable", self.span(target))
        return name, bound

    def atomic_on_local(
        self, op: AtomicOp, local: tuple[str, MutableVar | ChosenPart], values: list[Value], span: Span
    ) -> Value:
        """On a variable of this thread an atomic operation is the plain one; gives the old value."""
        name, part = local
        old = self.freeze_all(self.read_part(part, span))
        new = values[-1]
        if op is AtomicOp.CAS:
            new = self.select(self.same_bits(old, values[0], span), new, old, span)
        elif op in (AtomicOp.MIN, AtomicOp.MAX):
            new = self.call_builtin(op.value, [old, new], {}, span)
        elif op is not AtomicOp.EXCHANGE:
            new = self.binary(_LOCAL_OPERATORS[op], old, new, span)
        self.write_part(name, part, new, span)
        return old

    def same_bits(self, old: Value, expected: Value, span: Span) -> Value:
        """What a compare-and-swap asks: floats are compared by their bits, as memory does it."""
        if isinstance(old, Vec):
            spread = self.components_for(expected, old.shape, old.type, span)
            return self.map_vec(lambda x, y: self.same_bits(x, y, span), old, Vec(old.shape, tuple(spread)))
        expected = self.components_for(expected, (), old.type, span)[0]
        if old.type.is_float:
            bits = BY_NAME[f"u{old.type.bits}"]
            old, expected = self.bit_cast(old, bits, span), self.bit_cast(expected, bits, span)
        return self.compare(ast.Eq, old, expected, span)

    def atomic(
        self, op: AtomicOp, target: ElementRef | MutableVar | ChosenPart, value: Value, span: Span, *,
        expected: Value = None, wanted: bool = True,
    ) -> Value:  # fmt: skip
        """Read-modify-write of a place; vectors component by component.  Gives the old value if it is ``wanted``."""
        if isinstance(target, ChosenPart):
            return self.atomic_on_chosen(op, target, value, span, expected, wanted=wanted)
        if isinstance(target, MutableVar):
            places: tuple[Any, ...] = tuple(self.slot(var, span) for var in target.vars)
            shape = target.shape or ()
        else:
            places, shape = self.written_places(target, span), self.element_shape(target)
        type = places[0].type
        if op in (AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR) and type.is_float:
            self.fail_type(f"atomic_{op.value} needs an integer place, not {type}", span)
        items = self.components_for(value, shape, type, span)
        compare = self.components_for(expected, shape, type, span) if expected is not None else [None] * len(places)
        olds: list[Any] = []
        for place, item, wanted_old in zip(places, items, compare, strict=True):
            result = self.build.var("old", type) if wanted else None
            self.build.emit(Atomic(op, place, item, result, wanted_old, span=span))
            if result:
                olds.append(self.read_var(result, span))
        if not wanted:
            return None
        return Vec(shape, tuple(olds)) if shape else olds[0]

    def atomic_on_chosen(
        self, op: AtomicOp, chosen: ChosenPart, value: Value, span: Span, expected: Value, *, wanted: bool
    ) -> Value:
        """The operation on the part that is chosen at run time; the old value is 0 where none is."""
        value, expected = self.freeze_all(value), self.freeze_all(expected)
        old = [self.build.var("old", var.type, mutable=True) for var in chosen.vars] if wanted else []
        for var in old:
            self.build.assign(var, literal(0, var.type, span), span)
        for number, part in enumerate(chosen.parts):
            with self.build.block() as stmts:
                found = self.atomic(op, part, value, span, expected=expected, wanted=wanted)
                for var, item in zip(old, found.elems if isinstance(found, Vec) else (found,), strict=False):
                    self.build.assign(var, item, span)
            hit, nothing = self.is_chosen(chosen, number, span), Block((), span=span)
            self.build.emit(If(hit, Block(tuple(stmts), span=span), nothing, span=span))
        if not wanted:
            return None
        elems = tuple(self.build.let(self.read_var(var, span)) for var in old)
        shape = chosen.parts[0].shape
        return Vec(shape, elems) if shape else elems[0]

    # Supplied by the classes that derive from this one.
    def is_chosen(self, chosen: ChosenPart, number: int, span: Span) -> Expr:
        raise NotImplementedError

    def named_part(self, name: str, target: ast.expr) -> MutableVar | ChosenPart:
        raise NotImplementedError

    def read_part(self, part: MutableVar | ChosenPart, span: Span) -> Value:
        raise NotImplementedError

    def write_part(self, name: str, part: MutableVar | ChosenPart, value: Value, span: Span) -> None:
        raise NotImplementedError


def _defined_here(fn: Any, count: int) -> bool:
    """Whether the language has a result of its own for numbers that are known when compiling."""
    return fn in (builtins.min, builtins.max) or (fn is builtins.pow and count == 2)


def _expanded(fn: Any) -> Func:
    """The ``Func`` of a plain function that the library marks with ``expand``."""
    return _EXPANDED.setdefault(fn, Func(fn))


_EXPANDED: dict[Any, Func] = {}
