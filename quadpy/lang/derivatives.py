"""The derivatives of a kernel: its arrays come with their gradients or duals, and the IR is differentiated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from quadpy.core.derivatives import Derivative
from quadpy.core.importing import import_late
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children
from quadpy.lang.arguments import ArgType, ArrayArg
from quadpy.lang.checkpoints import has_checkpoints
from quadpy.lang.context import Trace
from quadpy.lang.dependencies import MISSING
from quadpy.lang.library import with_callees
from quadpy.lang.scope import import_value
from quadpy.lang.values import ArrayRef

RESULT: Final = "$result"
"""As in ``ir.grad.reverse``."""


def pass_derivatives(t: Trace, args: Mapping[str, ArgType]) -> None:
    """Adds the derivatives of the fields that the kernel uses to its parameters; those of arguments are there.

    Raises:
        KernelTypeError: an array or field of a kind that is not differentiated.
    """
    span, asked = t.frame.source.span, _asked(t)
    if has_checkpoints(t):
        t.fail_type("a kernel with checkpoints is not differentiated", span, "leave the checkpoints out")
    for name, arg in args.items():
        if isinstance(arg, ArrayArg) and arg.distributed:
            _refuse(t, name, "is distributed", "differentiate on one rank")
    for ref, field in list(t.signature.fields.values()):
        if getattr(field, "__quadpy_distributed__", False):
            _refuse(t, _called(t, ref.name), "is distributed", "differentiate on one rank")
        for path in asked.paths:
            found = _derivative_of(t, field, path)
            passed = None if found is None else import_value(t, found)
            if not isinstance(passed, ArrayRef) or passed.type == ref.type:
                continue
            has_directions = asked.directions is not None and path.endswith("dual")  # an axis of its own
            if not has_directions or passed.type.ndim != ref.type.ndim + 1:
                _refuse(t, _called(t, ref.name), f"has a {path} with another layout", f"place x and x.{path} together")


def _refuse(t: Trace, name: str, why: str, hint: str) -> None:
    t.fail_type(f"{name} {why}: its derivatives are not computed", t.frame.source.span, hint)


def _called(t: Trace, name: str) -> str:
    return next((p.called for p in t.signature.field_params if p.name == name), "") or name


def _asked(t: Trace) -> Derivative:
    return t.options.derivative


def _derivative_of(t: Trace, field: Any, path: str) -> Any:
    """The gradient or dual of ``field``; None for a field without one."""
    if getattr(field, "derivative", "") or not getattr(field, "is_differentiable", False):
        return None
    for kind in path.split("."):
        field = t.deps.attribute(field, kind)
        if field is MISSING or not hasattr(field, "shape"):
            return None
    return field


def differentiated(t: Trace, kernel: ir.Kernel) -> ir.Kernel:
    """The backward or forward kernel of ``kernel``, whose parameters include the derivatives of arrays that have one.

    Raises:
        CompilationError: it cannot be differentiated, with the line that prevents it.
    """
    asked = _asked(t)
    if asked.of_turn:
        kernel = replace(kernel, body=_turn_of(kernel), name=f"{kernel.name}_turn")
        kernel = map_children(kernel, partial(_without, ir.Print)) if asked.silent else kernel
    if not asked.kind:
        return kernel
    kind, found = asked.kind, {path: _derivatives(t, kernel, path) for path in asked.paths}
    if "return.grad" in kernel.arrays:
        found["grad"][f"{RESULT}0"] = "return.grad"
    if not all(found.values()):
        raise KernelTypeError(
            f"{kernel.name} uses no array with a {kind}", t.frame.source.span,
            hint="make its fields and arrays with " + " and ".join(f"needs_{k}=True" for k in dict.fromkeys(".".join(asked.paths).split("."))),
        )  # fmt: skip
    _require_supported(t, kernel)
    kernel = map_children(kernel, partial(_without, ir.Mark))  # where debuggers stop
    if kind == "dual":
        made = import_late("quadpy.ir.grad.forward").tangent(kernel, found["dual"], with_callees, asked.directions)
    else:
        duals = found.get("dual", {}) | {found["grad"][name]: dual for name, dual in found.get("grad.dual", {}).items()}
        adjoint = import_late("quadpy.ir.grad.reverse").adjoint
        made = _repeating(
            adjoint(kernel, found["grad"], with_callees, duals, asked.directions, from_before=asked.from_before)
        )
    return replace(made, name=f"{kernel.name}_{kind.replace('.', '_')}")  # type: ignore[no-any-return]  # a kernel


def _turn_of(kernel: ir.Kernel) -> ir.Block:
    """The body of the loop that the kernel is."""
    first, *others = [stmt for stmt in kernel.body.stmts if not isinstance(stmt, ir.Mark)]
    if others or not isinstance(first, ir.DoWhile):
        raise KernelTypeError(
            "quadpy knows no adjoint of a do-while loop beside other statements of a kernel", (others or [first])[0].span,
            hint="write what comes before the loop, and after it, as kernels of their own",
        )  # fmt: skip
    return first.body


def _derivatives(t: Trace, kernel: ir.Kernel, path: str) -> dict[str, str]:
    """The names of the derivatives at ``path`` that the kernel has, by the name of what they are of."""
    names = [*kernel.arrays, *(param.name for param in kernel.params if isinstance(param, ir.ScalarParam))]
    found = {name: other for name in names for other in _called_for(name, path) if other in kernel.arrays}
    for ref, field in t.signature.fields.values():
        if (derivative := _derivative_of(t, field, path)) is not None:
            found[ref.name] = t.signature.fields[id(derivative)][0].name
    return found


def _called_for(name: str, path: str) -> list[str]:
    """What the derivative of a parameter may be called: that of ``v`` has those of its components, ``v.0`` and so on."""
    whole, _, component = name.rpartition(".")
    return [f"{name}.{path}", *([f"{whole}.{path}"] if component.isdecimal() else [])]


def _repeating(node: ir.Node) -> ir.Node:
    """``node`` with the number of the forward launch, so that it draws the same random numbers."""
    if isinstance(node, (ir.ParamRead, ir.ScalarParam)) and node.name == "$launch":
        return replace(node, name="$repeated")
    return map_children(node, _repeating)


def _without(kind: type[ir.Node], node: ir.Node) -> ir.Node:
    """``node`` without statements of this kind."""
    if isinstance(node, ir.Block):
        node = ir.Block(tuple(stmt for stmt in node.stmts if not isinstance(stmt, kind)), span=node.span)
    return map_children(node, partial(_without, kind))


def _require_supported(t: Trace, kernel: ir.Kernel) -> None:
    is_backward, span = _asked(t).kind == "grad", t.frame.source.span
    if any(type.is_float for type in kernel.results) and (not is_backward or len(kernel.results) > 1):
        t.fail_type(
            f"{kernel.name} returns a value, whose derivative would be lost", span,
            "write it to a field or an ndarray of one number",
        )  # fmt: skip
