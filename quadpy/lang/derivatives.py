"""The derivatives of a kernel: its arrays come with their gradients or duals, and the IR is differentiated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from quadpy.core.importing import import_late
from quadpy.errors import KernelTypeError
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children
from quadpy.lang.activity import is_sparse
from quadpy.lang.arguments import ArgType, ArrayArg
from quadpy.lang.checkpoints import has_checkpoints
from quadpy.lang.context import Trace
from quadpy.lang.dependencies import MISSING
from quadpy.lang.library import with_callees
from quadpy.lang.scope import import_value
from quadpy.lang.values import ArrayRef

RESULT: Final = "$result"
"""As in ``ir.grad.reverse``."""

_TRANSFORMS: Final = {"grad": ("quadpy.ir.grad.reverse", "adjoint"), "dual": ("quadpy.ir.grad.forward", "tangent")}


def pass_derivatives(t: Trace, args: Mapping[str, ArgType]) -> None:
    """Adds the derivatives of the fields that the kernel uses to its parameters; those of arguments are there.

    Raises:
        KernelTypeError: an array or field of a kind that is not differentiated.
    """
    span = t.frame.source.span
    if has_checkpoints(t):
        t.fail_type("a kernel with checkpoints is not differentiated", span, "leave the checkpoints out")
    for name, arg in args.items():
        if isinstance(arg, ArrayArg) and arg.distributed:
            _refuse(t, name, "is distributed", "differentiate on one rank")
    for ref, field in list(t.signature.fields.values()):
        if getattr(field, "__quadpy_distributed__", False):
            _refuse(t, _called(t, ref.name), "is distributed", "differentiate on one rank")
        if is_sparse(field):
            _refuse(t, _called(t, ref.name), "is in a sparse tree", "place it in a dense tree")
        found = _derivative_of(t, field)
        passed = None if found is None else import_value(t, found)
        if isinstance(passed, ArrayRef) and passed.type != ref.type:
            kind = t.options.derivative
            _refuse(t, _called(t, ref.name), f"has a {kind} with another layout", f"place x and x.{kind} together")


def _refuse(t: Trace, name: str, why: str, hint: str) -> None:
    t.fail_type(f"{name} {why}: its derivatives are not computed", t.frame.source.span, hint)


def _called(t: Trace, name: str) -> str:
    return next((p.called for p in t.signature.field_params if p.name == name), "") or name


def _derivative_of(t: Trace, field: Any) -> Any:
    """The gradient or dual of ``field``; None for a field without one."""
    if getattr(field, "derivative", "") or not getattr(field, "is_differentiable", False):
        return None
    found = t.deps.attribute(field, t.options.derivative)
    return None if found is MISSING or not hasattr(found, "shape") else found


def differentiated(t: Trace, kernel: ir.Kernel) -> ir.Kernel:
    """The backward or forward kernel of ``kernel``, whose parameters include the derivatives of arrays that have one.

    Raises:
        CompilationError: it cannot be differentiated, with the line that prevents it.
    """
    kind = t.options.derivative
    names = [*kernel.arrays, *(param.name for param in kernel.params if isinstance(param, ir.ScalarParam))]
    derivatives = {name: other for name in names if (other := f"{name}.{kind}") in kernel.arrays}
    for ref, field in t.signature.fields.values():
        if (found := _derivative_of(t, field)) is not None:
            derivatives[ref.name] = t.signature.fields[id(found)][0].name
    if "return.grad" in kernel.arrays:
        derivatives[f"{RESULT}0"] = "return.grad"
    if not derivatives:
        raise KernelTypeError(
            f"{kernel.name} uses no array with a {kind}", t.frame.source.span,
            hint=f"make its fields and arrays with needs_{kind}=True",
        )  # fmt: skip
    _require_supported(t, kernel)
    module, name = _TRANSFORMS[kind]
    way = {"from_before": t.options.from_before} if kind == "grad" else {}
    made: ir.Kernel = getattr(import_late(module), name)(
        map_children(kernel, _unmarked), derivatives, with_callees, **way
    )
    made = replace(made, name=f"{kernel.name}_{kind}")
    return _repeating(made) if kind == "grad" else made  # type: ignore[return-value]  # a kernel for a kernel


def _repeating(node: ir.Node) -> ir.Node:
    """``node`` with the number of the forward launch, so that it draws the same random numbers."""
    if isinstance(node, (ir.ParamRead, ir.ScalarParam)) and node.name == "$launch":
        return replace(node, name="$repeated")
    return map_children(node, _repeating)


def _unmarked(node: ir.Node) -> ir.Node:
    """``node`` without places of the source, which debuggers stop at."""
    if isinstance(node, ir.Block):
        kept = [stmt for stmt in node.stmts if not isinstance(stmt, ir.Mark)]
        node = ir.Block(tuple(kept), span=node.span)
    return map_children(node, _unmarked)


def _require_supported(t: Trace, kernel: ir.Kernel) -> None:
    is_backward, span = t.options.derivative == "grad", t.frame.source.span
    if any(type.is_float for type in kernel.results) and (not is_backward or len(kernel.results) > 1):
        t.fail_type(
            f"{kernel.name} returns a value, whose derivative would be lost", span,
            "write it to a field or an ndarray of one number",
        )  # fmt: skip
