"""A kernel as a function of Python that is called as the entry point of compiled kernels is."""

from __future__ import annotations

import re
import struct
import sys
import traceback
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from quadpy.codegen.abi import layout_of
from quadpy.core.dtypes import Scalar, bf16, f16
from quadpy.core.source import Span
from quadpy.errors import CodegenError, KernelFault, KernelIndexError
from quadpy.interpreter.expressions import Constants
from quadpy.interpreter.loops import KernelStatements
from quadpy.interpreter.numbers import bf16_of_bits, bits_of_bf16, number
from quadpy.interpreter.plans import NO_LOOPS, KernelPlan
from quadpy.interpreter.scopes import Scope, Variables
from quadpy.interpreter.support import OUTSIDE, Memory, OutputError, Prints, Show
from quadpy.interpreter.text import OWN, CodeText, Origin, compiled, identifier
from quadpy.interpreter.unset import read_unset
from quadpy.ir import nodes as ir


class PythonKernel:
    """``entry(block, scratch, first task)``, as ``CodeObject.entry``: runs all tasks and returns -1.

    ``origin`` is the function of the source, ``names`` are its globals; ``show`` gets its output.
    """

    def __init__(self, plan: KernelPlan, origin: Origin, names: Mapping[str, Any], show: Show) -> None:
        self._kernel = kernel = plan.kernel
        layout = layout_of(kernel)
        self._values, self._unpack = layout.values, struct.Struct(layout.format).unpack_from
        variables, constants = Variables(), Constants()
        constants.names[constants.prints] = Prints(show)
        with np.errstate(all="ignore"):  # constants that a type rounds to infinity
            self.text, code = _written(plan, origin, variables, constants)
            for function in kernel.functions:
                _add_function(function, variables, constants)
        self._function = _made(code, {**names, **constants.names}, variables)
        self._arguments = tuple(variables.arguments)

    def __call__(self, block: bytes, scratch: Any, first_task: int) -> int:
        given = self._given(block)
        with np.errstate(all="ignore"):
            try:
                returned = self._function(*(given[name] for name in self._arguments))
            except KernelFault as fault:
                fault.kernel = fault.kernel or self._kernel.name
                raise
            except OutputError as error:
                raise (error.__cause__ or error) from None
            except IndexError as error:
                raise _index_error(error, self._kernel.name) from None
            except _MISTAKES as error:  # which launches take for arguments that do not fit
                place = _innermost(error)
                message = f"{self._kernel.name}: Python cannot run this line: {error}"
                raise CodegenError(message, place, hint="use arch=qp.cpu").with_traceback(error.__traceback__) from None
        results = returned if isinstance(returned, tuple) else (returned,) * len(self._kernel.results)
        for cell, (value, type) in enumerate(zip(results, self._kernel.results, strict=True)):
            held = bits_of_bf16(value) if type == bf16 else value
            scratch[cell] = int.from_bytes(held.tobytes(), sys.byteorder)
        return -1

    def _given(self, block: bytes) -> dict[str, Any]:
        """The arguments of a launch by their names in Python."""
        values: dict[str, dict[str, list[int | float]]] = {}
        for value, held in zip(self._values, self._unpack(block), strict=True):
            values.setdefault(value.param, {}).setdefault(value.part, []).append(held)
        given: dict[str, Any] = {}
        for param in self._kernel.params:
            parts, name = values[param.name], identifier(param.name)
            if isinstance(param, ir.ScalarParam):
                given[f"{name}{OWN}given"] = _scalar(parts["scalar"][0], param.type)
                continue
            pointer, strides, extents = (
                list(map(int, parts.get(part, ()))) for part in ("pointer", "stride", "extent")
            )
            memory = Memory(param.type, pointer[0], tuple(param.type.shape or extents), tuple(strides))
            given |= {f"{name}{OWN}{k}": part for k, part in enumerate(memory.parts())}
            given |= {f"{name}{OWN}extent{k}": number(n, self._kernel.index) for k, n in enumerate(memory.extents)}
            given[f"{name}{OWN}whole"] = memory.whole()
        return given


def _written(plan: KernelPlan, origin: Origin, variables: Variables, constants: Constants) -> tuple[str, CodeType]:
    """The text and the code of the function of the kernel."""
    code, body = CodeText(), plan.kernel.body
    code.line = origin.line
    statements = KernelStatements(code, Scope(variables, origin), constants, plan)
    name = statements.scope.python_name
    with code.block(lambda: [f"def {name}({', '.join(variables.arguments)}):"]):
        statements.prologue()
        statements.zero(read_unset(body))
        statements.block(body.stmts)
        if not body.stmts:
            code.put("pass")
    return code.finished()[0], compiled(code, variables.origins)


def _add_function(function: ir.Function, variables: Variables, constants: Constants) -> None:
    """Adds a function of the math library to the names of the kernel: it is all in one line, which no debugger shows."""
    own = Variables()
    own.functions = variables.functions
    code = CodeText()
    statements = KernelStatements(code, Scope(own, Origin(function.name, "<quadpy>", 1)), constants, NO_LOOPS)
    name = statements.scope.python_name
    with code.block(lambda: [f"def {name}({', '.join(f'{p.name}{OWN}given' for p in function.params)}):"]):
        statements.zero(read_unset(function.body))
        statements.block(function.body.stmts)
    made = _made(compiled(code, own.origins), constants.names, own)
    constants.names[variables.functions.setdefault(function.name, f"_{OWN}f{len(variables.functions)}")] = made


def _made(code: CodeType, names: dict[str, Any], variables: Variables) -> FunctionType:
    exec(code, names)  # noqa: S102 - code that was made here
    return names.pop(next(iter(variables.origins)))  # type: ignore[no-any-return]  # the function that the code defines


def _scalar(held: float, t: Scalar) -> Any:
    if t == bf16:
        return bf16_of_bits(np.uint16(held))
    return np.uint16(held).view(np.float16) if t == f16 else number(held, t)


_OUT_OF_BOUNDS: Final = re.compile(r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)")


def _index_error(error: IndexError, name: str) -> KernelIndexError:
    """NumPy's error as quadpy's, with the place where it was raised."""
    text, values = str(error), tuple[int, ...]()
    if found := _OUT_OF_BOUNDS.match(text):
        index, axis, extent = map(int, found.groups())
        index += OUTSIDE if index < 0 else 0
        text, values = f"index {index} is out of range: axis {axis} has extent {extent}", (index, extent)
    made = KernelIndexError(text, _innermost(error), kernel=name, values=values)
    return made.with_traceback(error.__traceback__)


_MISTAKES: Final = (TypeError, ValueError, OverflowError)


def _innermost(error: BaseException) -> Span:
    """The line that raised ``error``."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return Span(frame.f_code.co_filename, line)
