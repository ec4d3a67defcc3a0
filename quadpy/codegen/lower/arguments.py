"""The values of the argument block as operands, and functions whose parameters hold them."""

from __future__ import annotations

from quadpy.codegen.abi import scalar_of, value_name
from quadpy.codegen.lower.scope import FAST_FLAGS, ArrayOperands, Scope
from quadpy.codegen.lower.text import FunctionText, ModuleText, memory_type, symbol
from quadpy.codegen.schedule import KernelSchedule
from quadpy.codegen.targets.rules import TargetRules
from quadpy.core.artifact import AbiValue
from quadpy.core.dtypes import Scalar
from quadpy.core.light import dataclass
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk


@dataclass(frozen=True, slots=True)
class Argument:
    """One value of the block: its position, its type (None for a pointer) and the operand that holds it."""

    value: AbiValue
    type: Scalar | None
    operand: str

    def llvm_type(self, pointer: str) -> str:
        return pointer if self.type is None else memory_type(self.type)

    def load(self, out: FunctionText) -> str:
        """On the CPU: writes the value's address in the block ``%args``, and returns the instruction that loads it."""
        where = out.op(f"getelementptr i8, ptr %args, i64 {self.value.offset}")
        return f"load {self.llvm_type('ptr')}, ptr {where}"


def arguments_of(schedule: KernelSchedule, used: set[str] | None = None) -> tuple[Argument, ...]:
    """The arguments of a kernel in order, or those of the parameters in ``used``."""
    kernel = schedule.kernel
    found = [value for value in schedule.layout.values if used is None or value.param in used]
    return tuple(
        Argument(
            value, None if value.part == "pointer" else scalar_of(value, kernel), symbol(f"p.{value_name(value)}", "%")
        )
        for value in found
    )


def names_used(node: ir.Node) -> set[str]:
    """The parameters that ``node`` mentions."""
    names = set()
    for n in walk(node):
        match n:
            case ir.Element(array=name) | ir.ShapeOf(array=name) | ir.ParamRead(name=name):
                names.add(name)
            case _:
                pass
    return names


def new_function(
    module: ModuleText, kernel: ir.Kernel, rules: TargetRules, arguments: tuple[Argument, ...] = ()
) -> Scope:
    """A fresh function in which ``arguments`` and ``%scratch`` are known."""
    functions = {f.name: f for f in kernel.functions}
    flags = FAST_FLAGS if kernel.fast_math else ""
    s = Scope(FunctionText(module, rules.alloca), rules, kernel.index, functions, flags, "%scratch")
    bind_arguments(s, kernel, arguments)
    return s


def bind_arguments(s: Scope, kernel: ir.Kernel, arguments: tuple[Argument, ...]) -> None:
    """Bind the parameters under their names; those not in ``arguments`` stay unbound."""
    by_param: dict[str, list[Argument]] = {}
    for argument in arguments:
        by_param.setdefault(argument.value.param, []).append(argument)
    for param in kernel.params:
        if (parts := by_param.get(param.name)) is None:
            continue
        if isinstance(param, ir.ArrayParam):
            s.arrays[param.name] = _array(s, param, parts)
        else:
            s.params[param.name] = _scalar(s, param.type, parts[0].operand)


def _scalar(s: Scope, t: Scalar, operand: str) -> str:
    return s.text.op(f"icmp ne i8 {operand}, 0") if t.bits == 1 else operand


def _array(s: Scope, param: ir.ArrayParam, parts: list[Argument]) -> ArrayOperands:
    if param.type.shape is not None:
        extents = wide = tuple(map(str, param.type.shape))
    else:
        extents = wide = tuple(part.operand for part in parts if part.value.part == "extent")
        if s.index.bits < 64 and not s.narrow:
            wide = tuple(s.text.op(f"zext nneg i32 {extent} to i64") for extent in extents)
    strides = tuple(part.operand for part in parts if part.value.part == "stride")
    return ArrayOperands(param.type, parts[0].operand, extents, wide, strides)
