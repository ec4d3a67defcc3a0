"""Vectors and matrices: construction, components, products.  Owns: Vectors.  Imports: ``ir``, ``lang``, leaves."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from quadpy.dtypes import Scalar, i32, promote, u1
from quadpy.ir.nodes import BinOp, CmpOp, Compare, Expr, Select, Unary, UnOp
from quadpy.lang.containers import Containers
from quadpy.lang.promotion import literal
from quadpy.lang.values import Value, Vec, is_number, is_runtime, shape_text
from quadpy.source import Span

__all__ = ["SWIZZLES", "Vectors", "is_swizzle"]

SWIZZLES = ("xyzw", "rgba", "stpq")


def is_swizzle(name: str) -> bool:
    """Whether ``name`` names components of some vector."""
    return 1 <= len(name) <= 4 and any(set(name) <= set(letters) for letters in SWIZZLES)


class Vectors(Containers):
    """What vectors can do."""

    def vector(self, items: Any, span: Span, dtype: Scalar | None = None) -> Vec:
        """A vector of scalars, or a matrix of rows, in the type in which all of them meet."""
        if isinstance(items, Vec):
            return items if dtype is None else self.map_vec(lambda e: self.cast(e, dtype, span), items)
        if not isinstance(items, (tuple, list)) or not items:
            self.fail_type(f"a vector is made of a list of numbers, not of {shape_text(items)}", span)
        if not any(isinstance(item, (tuple, list, Vec)) for item in items):
            return self.vec_of(items, (len(items),), span, dtype)
        rows: list[Sequence[Value]] = []  # their literals have no type before all meet
        for item in items:
            if isinstance(item, (tuple, list)) or (isinstance(item, Vec) and len(item.shape) == 1):
                rows.append(item.elems if isinstance(item, Vec) else item)
        if len(rows) < len(items) or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
            self.fail_type("the rows of a matrix are lists of one length", span)
        return self.vec_of([e for row in rows for e in row], (len(rows), len(rows[0])), span, dtype)

    def vec_of(self, flat: Sequence[Value], shape: tuple[int, ...], span: Span, dtype: Scalar | None = None) -> Vec:
        for item in flat:
            if not (is_runtime(item) or is_number(item)):
                self.fail_type(f"a component of a vector is a number, not {shape_text(item)}", span)
        self.effort.take(len(flat))
        if dtype is not None and not isinstance(dtype, Scalar):
            self.fail_type(f"the type of components is a scalar type, not {shape_text(dtype)}", span)
        types = [item.type if is_runtime(item) else self.defaults.of(item) for item in flat]
        type = dtype or reduce(promote, types)
        convert = self.cast if dtype else self.convert
        return Vec(shape, tuple(self.build.let(convert(item, type, span)) for item in flat))

    def vec_attribute(self, vec: Vec, name: str, span: Span) -> Value | None:
        """``v.x``, ``v.xyz``, ``m.n``; None where ``name`` is none of these."""
        if name in ("n", "m"):
            return vec.shape[0] if name == "n" else (vec.shape[1] if len(vec.shape) > 1 else 1)
        picked = self.swizzle(vec, name)
        if picked is None:
            return None
        return vec.elems[picked[0]] if len(picked) == 1 else Vec((len(picked),), tuple(vec.elems[i] for i in picked))

    @staticmethod
    def swizzle(vec: Vec, name: str) -> tuple[int, ...] | None:
        """Component numbers of a swizzle; None where ``name`` is none, or names a component that is not there."""
        for letters in SWIZZLES:
            if len(name) <= 4 and len(vec.shape) == 1 and all(c in letters[: vec.shape[0]] for c in name):
                return tuple(letters.index(c) for c in name)
        return None

    def vec_index(self, vec: Vec, index: tuple[Value, ...], span: Span) -> Value:
        """``v[i]``, ``m[i, j]``, ``m[i]``; a run-time index picks by comparing, so vectors stay in registers."""
        if any(isinstance(i, slice) for i in index):
            return self.vec_slice(vec, index, span)
        if not index or len(index) > len(vec.shape):
            self.fail_type(f"{len(index)} indices for a {shape_text(vec)}", span)
        if len(index) == 1 and len(vec.shape) == 2:
            picks = [self.pick(vec, (index[0], j), span) for j in range(vec.shape[1])]
            return Vec((vec.shape[1],), tuple(picks))
        return self.pick(vec, index, span)

    def pick(self, vec: Vec, index: tuple[Value, ...], span: Span) -> Expr:
        flat = self.flat_index(vec, index, span)
        if isinstance(flat, int):
            return vec.elems[flat]
        flat = self.build.let(flat)
        result: Expr = literal(0, vec.type, span)
        for i, elem in enumerate(vec.elems):
            hit = Compare(CmpOp.EQ, flat, literal(i, flat.type, span), u1, span=span)
            result = Select(hit, elem, result, vec.type, span=span)
        return self.build.let(result)

    def flat_index(self, vec: Vec, index: tuple[Value, ...], span: Span) -> int | Expr:
        """The row-major position of a component, counted from the end below 0; of an index out of range, no position."""
        flat: Value = 0
        inside: Value = True
        for i, extent in zip(index, vec.shape, strict=True):
            if isinstance(i, int):
                i = self.check_index(i, extent, span)
            elif not is_runtime(i) or i.type.is_float:
                self.fail_type(f"an index is an integer, not {shape_text(i)}", span)
            else:
                i = self.from_start(i, extent, span)
                if len(index) > 1:
                    within = [self.compare(ast.GtE, i, 0, span), self.compare(ast.Lt, i, extent, span)]
                    inside = self.join(BinOp.AND, [inside, *within], span)
            flat = self.binary(ast.Add, self.binary(ast.Mult, flat, extent, span), i, span)
        return self.select(inside, flat, math.prod(vec.shape), span)  # type: ignore[no-any-return]

    def from_start(self, index: Expr, extent: int, span: Span) -> Expr:
        """A run-time index, of which -1 is the last."""
        index = self.build.let(self.integer(index, span))
        if index.type.kind == "uint":
            return index
        index = index if index.type.bits >= 32 else self.cast(index, i32, span)
        back = self.binary(ast.Add, index, extent, span)
        return self.build.let(self.select(self.compare(ast.Lt, index, 0, span), back, index, span))

    def vec_slice(self, vec: Vec, index: tuple[Value, ...], span: Span) -> Vec:
        if any(isinstance(i, slice) and i.step == 0 for i in index) or len(index) > len(vec.shape):
            self.fail_type(
                f"this is no slice of a {shape_text(vec)}", span, "its step is not 0, and it has one part an axis"
            )
        picks = [range(n)[i] if isinstance(i, slice) else i for i, n in zip(index, vec.shape, strict=False)]
        picks += [range(n) for n in vec.shape[len(picks) :]]
        if len(picks) == 1:
            return Vec((len(picks[0]),), tuple(vec.elems[i] for i in picks[0]))
        rows, cols = picks
        if isinstance(rows, range) and isinstance(cols, range):
            flat = [self.pick(vec, (i, j), span) for i in rows for j in cols]
            return Vec((len(rows), len(cols)), tuple(flat))
        pairs = [(i, cols) for i in rows] if isinstance(rows, range) else [(rows, j) for j in cols]
        return Vec((len(pairs),), tuple(self.pick(vec, pair, span) for pair in pairs))

    def matmul(self, a: Value, b: Value, span: Span) -> Value:
        """``a @ b``; each dot product adds its terms from left to right."""
        if not isinstance(a, Vec) or not isinstance(b, Vec):
            self.fail_type(f"@ needs vectors or matrices, not {shape_text(a)} and {shape_text(b)}", span)
        if a.shape[-1] != b.shape[0]:
            self.fail_type(f"inner extents differ: {shape_text(a)} @ {shape_text(b)}", span)
        rows = [a.row(i) for i in range(a.shape[0])] if len(a.shape) == 2 else [a]
        cols = [self.column(b, j) for j in range(b.shape[1])] if len(b.shape) == 2 else [b]
        dots = [self.dot(row, col, span) for row in rows for col in cols]
        if len(a.shape) == 1 and len(b.shape) == 1:
            return dots[0]
        shape = (len(rows), len(cols)) if len(a.shape) == len(b.shape) == 2 else (len(dots),)
        return Vec(shape, tuple(self.build.let(d) for d in dots))

    @staticmethod
    def column(m: Vec, j: int) -> Vec:
        return Vec((m.shape[0],), tuple(m.elems[i * m.shape[1] + j] for i in range(m.shape[0])))

    def dot(self, a: Vec, b: Vec, span: Span) -> Expr:
        terms = [self.binary(ast.Mult, x, y, span) for x, y in zip(a.elems, b.elems, strict=True)]
        return reduce(lambda x, y: self.binary(ast.Add, x, y, span), terms)  # type: ignore[no-any-return]

    def sum_of(self, items: Sequence[Expr], span: Span) -> Expr:
        """The items added from left to right."""
        return reduce(lambda x, y: self.binary(ast.Add, x, y, span), items)

    def sqrt(self, value: Expr, span: Span) -> Expr:
        value = value if value.type.is_float else self.cast(value, self.defaults.fp, span)
        return Unary(UnOp.SQRT, value, value.type, span=span)
