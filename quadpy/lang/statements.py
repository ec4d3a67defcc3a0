"""Statements of Python's grammar, but for loops.  Owns: Statements.  Imports: ``ir``, ``lang`` and leaves only."""

from __future__ import annotations

import ast
from typing import Any

from quadpy.dtypes import Scalar
from quadpy.ir.nodes import AtomicOp, Block, Break, Continue, If
from quadpy.lang.builtins import BUILTINS
from quadpy.lang.components import Components
from quadpy.lang.names import base_name
from quadpy.lang.state import ChosenPart, MutableVar
from quadpy.lang.values import ArrayRef, ElementRef, Value, Vec, is_number, is_runtime, shape_text
from quadpy.source import Span

__all__ = ["Statements", "StaticBreak", "StaticContinue"]

_ATOMIC_OPERATORS: dict[type[ast.operator], AtomicOp] = {
    ast.Add: AtomicOp.ADD, ast.Sub: AtomicOp.SUB, ast.Mult: AtomicOp.MUL, ast.BitAnd: AtomicOp.AND,
    ast.BitOr: AtomicOp.OR, ast.BitXor: AtomicOp.XOR,
}  # fmt: skip


_HINTS: dict[type[ast.stmt], str] = {
    ast.FunctionDef: "define it outside, under @qp.func",
    ast.Import: "import outside of the kernel",
    ast.ImportFrom: "import outside of the kernel",
    ast.Global: "write to a field, or to an element of an array",
    ast.Nonlocal: "write to a field, or to an element of an array",
    ast.Try: "kernels raise nothing: test for the case with if",
    ast.Raise: "kernels raise nothing: write down what happened, and raise outside",
}


class StaticBreak(Exception):
    """``break`` of an unrolled loop, while compiling."""


class StaticContinue(Exception):
    """``continue`` of an unrolled loop, while compiling."""


class Statements(Components):
    """One rule for each kind of statement; ``block`` is True where control never reaches the end."""

    def block(self, stmts: list[ast.stmt]) -> bool:
        for stmt in stmts:
            self.doing = self.frame.source, stmt
            self.effort.take(1)
            rule = getattr(self, f"stmt_{type(stmt).__name__}", None)
            if rule is None:
                self.fail_syntax(
                    f"{type(stmt).__name__} is not part of the kernel language", self.span(stmt),
                    _HINTS.get(type(stmt), ""),
                )  # fmt: skip
            if rule(stmt):
                return True
        return False

    def stmt_Pass(self, node: ast.Pass) -> None:
        pass

    def stmt_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            fn = self.static_object(node.value.func)
            if fn is BUILTINS["loop_config"]:
                self.loop_config(node.value)
                return
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # a docstring
        if isinstance(node.value, ast.Call) and self.is_vec_fill(node.value):
            return
        self.expr(node.value)

    def is_vec_fill(self, call: ast.Call) -> bool:
        """``v.fill(x)`` on a local vector changes it in place."""
        target = call.func
        if not (isinstance(target, ast.Attribute) and target.attr == "fill" and isinstance(target.value, ast.Name)):
            return False
        bound = self.frame.env.get(target.value.id)
        if not (isinstance(bound, MutableVar) and bound.shape):
            return False
        self.assign_target(target.value, self.expr(call), self.span(call))
        return True

    def stmt_Assign(self, node: ast.Assign) -> None:
        value = self.expr(node.value)
        if len(node.targets) > 1 or isinstance(node.targets[0], (ast.Tuple, ast.List)):
            value = self.freeze_all(value)
        for target in node.targets:
            self.assign_target(target, value, self.span(node))

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> None:
        wanted = self.expr(node.annotation)
        span = self.span(node)
        if node.value is None:
            self.fail_syntax("a declaration needs a value", span)
        value = self.call_python(wanted, [self.expr(node.value)], {}, span)
        if is_number(value):
            value = self.cast(value, self.defaults.of(value), span)
        self.assign_target(node.target, value, span)

    def assign_target(self, target: ast.expr, value: Value, span: Span) -> None:
        match target:
            case ast.Name(id=name):
                self.assign_name(name, value, span)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                items = value.elems if isinstance(value, Vec) else value
                if any(isinstance(elt, ast.Starred) for elt in elts):
                    self.fail_syntax("a starred target is not part of the kernel language", span, "name each value")
                if not isinstance(items, (tuple, list)) or len(items) != len(elts):
                    given = f"{len(items)} values" if isinstance(items, (tuple, list)) else shape_text(value)
                    self.fail_type(f"{len(elts)} names for {given}", span)
                for elt, item in zip(elts, items, strict=True):
                    self.assign_target(elt, item, span)
            case ast.Subscript() | ast.Attribute() if self.is_element(target):
                self.store_element(self.element(target), value, span)
            case _ if base := base_name(target):
                self.assign_component(base, target, value, span)
            case _:
                self.fail_syntax("this cannot be assigned to", self.span(target),
                                 "a part of a variable is v[i], v.xy or v[1:], of a matrix m[i, j], m[i] or m[:, j]")  # fmt: skip

    def assign_name(self, name: str, value: Value, span: Span) -> None:
        """The first assignment fixes the type of a name."""
        env = self.frame.env
        bound = env.get(name)
        if isinstance(value, (list, tuple)) and isinstance(bound, MutableVar) and bound.shape:
            value = self.vector(value, span)
        numeric = is_runtime(value) or is_number(value) or isinstance(value, Vec)
        if not numeric:
            if isinstance(bound, MutableVar) or (bound is not None and self.may_run_again() and bound is not value):
                self.fail_type(f"{name!r} cannot become a {shape_text(value)} here", span,
                               "compile-time values are bound outside run-time branches and loops")  # fmt: skip
            env[name] = self.freeze_all(value)
        elif isinstance(bound, MutableVar):
            self.set_variable(name, bound, value, span)
        elif isinstance(bound, ArrayRef):
            self.fail_type(f"{name!r} is an array and cannot become {shape_text(value)}", span, "take another name")
        elif name in self.frame.singles:
            if isinstance(value, Vec):
                env[name] = Vec(value.shape, tuple(self.build.let(e, name) for e in value.elems))
            else:
                env[name] = self.build.let(self.scalar(value, span), name)
        elif bound is not None and self.may_run_again():
            self.fail_type(f"{name!r} is {shape_text(bound)} of compile time and cannot change here", span,
                           "outside of the branch or loop, assign it to a variable; change that")  # fmt: skip
        else:
            self.declare(name, value, span)

    def may_run_again(self) -> bool:
        """True where a statement may run more than once, or not at all."""
        return self.frame.runtime_depth > 0

    def set_variable(self, name: str, bound: MutableVar, value: Value, span: Span) -> None:
        if (isinstance(value, Vec) or bound.shape) and getattr(value, "shape", bound.shape) != bound.shape:
            self.fail_type(f"{name!r} changes its shape to {shape_text(value)}", span)
        elems = value.elems if isinstance(value, Vec) else (value,) * len(bound.vars)
        self.write(bound, [self.variable_value(name, bound, e, v.type, span)
                           for v, e in zip(bound.vars, elems, strict=True)], span)  # fmt: skip
        self.frame.unset.discard(name)

    def variable_value(self, name: str, bound: MutableVar, value: Value, type: Scalar, span: Span) -> Any:
        self.check_type(name, bound, value, span)
        return self.convert(value, type, span) if is_number(value) else self.cast(value, type, span)

    def check_type(self, name: str, bound: MutableVar, value: Value, span: Span) -> None:
        """A variable of integers takes no floats: Python would make it a float, and cutting them is seldom meant."""
        given = value.type if is_runtime(value) or isinstance(value, Vec) else self.defaults.of(value)
        type = bound.vars[0].type
        if given.is_float and not type.is_float:
            self.fail_type(
                f"{name!r} is {type} since line {bound.span.line} and cannot become {given}", span,
                f"start it as a float ({name} = 0.0), or cast: {type}(...)",
            )  # fmt: skip

    def stmt_AugAssign(self, node: ast.AugAssign) -> None:
        """Atomic on global memory where the target has such an operation, plain on local variables."""
        span, op = self.span(node), _ATOMIC_OPERATORS.get(type(node.op))
        target = self.place(node.target)
        if target is None or op is None:
            return self.change(node, target, span)
        value = self.expr(node.value)
        if isinstance(target, MutableVar):
            value = self.vector(value, span) if isinstance(value, (tuple, list)) else value
            self.check_type(ast.unparse(node.target), target, value, span)
        self.atomic(op, target, value, span, wanted=False)

    def change(self, node: ast.AugAssign, target: ElementRef | MutableVar | ChosenPart | None, span: Span) -> None:
        """In Python's order: the place, what it holds, the value; a place is evaluated once."""
        match node.target:
            case _ if isinstance(target, ElementRef):
                old = self.load_element(target, span)
                self.store_element(target, self.binary(type(node.op), old, self.expr(node.value), span), span)
            case _ if name := base_name(node.target):
                part = target or self.named_part(name, node.target)
                old = self.freeze_all(self.read_part(part, span))
                self.write_part(name, part, self.binary(type(node.op), old, self.expr(node.value), span), span)
            case _:
                old = self.expr(node.target)
                self.assign_target(node.target, self.binary(type(node.op), old, self.expr(node.value), span), span)

    def stmt_If(self, node: ast.If) -> bool:
        cond = self.expr(node.test)
        if not is_runtime(cond):
            return self.block(node.body if self.decided(cond, self.span(node.test)) else node.orelse)
        span = self.span(node)
        cond, frame, before = self.truth(cond, span), self.frame, self.frame.assigned()
        then, then_ends = self.branch(node.body)
        paths = [] if then_ends else [frame.assigned()]
        frame.meet([before])
        orelse, else_ends = self.branch(node.orelse)
        frame.meet(paths if else_ends else [*paths, frame.assigned()])
        self.build.emit(If(cond, Block(tuple(then), span=span), Block(tuple(orelse), span=span), span=span))
        return then_ends and else_ends and bool(node.orelse)

    def branch(self, body: list[ast.stmt]) -> tuple[list[Any], bool]:
        """A block that may or may not run; what it binds at compile time ends with it."""
        frame = self.frame
        frame.runtime_depth += 1
        before = dict(frame.env)
        try:
            with self.build.block() as stmts:
                ends = self.block(body)
        finally:
            frame.runtime_depth -= 1
        frame.env = {n: v for n, v in frame.env.items() if n in before or isinstance(v, MutableVar)}
        return stmts, ends

    def stmt_Break(self, node: ast.Break) -> bool:
        kind = self.frame.loops[-1] if self.frame.loops else "none"
        if kind == "parallel":
            self.fail_syntax("a parallel loop has no break: its iterations have no order", self.span(node),
                             "use continue, or put qp.loop_config(serialize=True) before the loop")  # fmt: skip
        if kind.startswith("static"):
            self.check_static_jump(kind, "break", node)
            raise StaticBreak
        if self.frame.breaks:
            self.frame.breaks[-1].append(self.frame.assigned())
        self.build.emit(Break(span=self.span(node)))
        return True

    def stmt_Continue(self, node: ast.Continue) -> bool:
        kind = self.frame.loops[-1] if self.frame.loops else "none"
        if kind.startswith("static"):
            self.check_static_jump(kind, "continue", node)
            raise StaticContinue
        self.build.emit(Continue(span=self.span(node)))
        return True

    def check_static_jump(self, kind: str, what: str, node: ast.stmt) -> None:
        if kind != f"static{self.frame.runtime_depth}":
            self.fail_syntax(f"{what} of an unrolled loop under a run-time condition", self.span(node),
                             "make the condition static, or the loop a run-time one")  # fmt: skip

    def stmt_Return(self, node: ast.Return) -> bool:
        value = None if node.value is None else self.expr(node.value)
        if len(self.frames) > 1 or self.is_library:
            self.return_value(value, self.span(node))
        else:
            self.kernel_return(value, self.span(node))
        return True

    def stmt_Assert(self, node: ast.Assert) -> None:
        """Checked under ``debug=True`` only; here its condition must at least make sense."""
        cond = self.expr(node.test)
        if not is_runtime(cond) and not self.decided(cond, self.span(node.test)):
            self.fail_type("this assertion fails at compile time", self.span(node))

    # Supplied by the classes that derive from this one.
    def loop_config(self, call: ast.Call) -> None:
        raise NotImplementedError

    def kernel_return(self, value: Value, span: Span) -> None:
        raise NotImplementedError
