"""The IR as text: stable, readable, complete except for spans.  Cache keys and golden files depend on it.

Types appear where names are bound and on constants, casts and calls; all other types follow from these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quadpy.core.flow import print_flow
from quadpy.ir import nodes as ir
from quadpy.ir.effects import effects_of
from quadpy.ir.variables import bound_by
from quadpy.ir.walk import unhandled

_INFIX: Final = {
    ir.BinOp.ADD: "+", ir.BinOp.SUB: "-", ir.BinOp.MUL: "*", ir.BinOp.DIV: "/", ir.BinOp.FLOORDIV: "//", ir.BinOp.MOD: "%",
    ir.BinOp.AND: "&", ir.BinOp.OR: "|", ir.BinOp.XOR: "^", ir.BinOp.SHL: "<<", ir.BinOp.SHR: ">>", ir.BinOp.USHR: ">>>",
}  # fmt: skip
COMPARISONS: Final = {
    ir.CmpOp.EQ: "==", ir.CmpOp.NE: "!=", ir.CmpOp.LT: "<", ir.CmpOp.LE: "<=", ir.CmpOp.GT: ">", ir.CmpOp.GE: ">=",
}  # fmt: skip
_EFFECTS: Final = ((ir.Access.READ, "r"), (ir.Access.WRITE, "w"), (ir.Access.ATOMIC, "a"))


def print_ir(kernel: ir.Kernel) -> str:
    """The text of ``kernel``: equal for equal kernels, whatever file and line they come from, but for those of checks."""
    lines = [_kernel_head(kernel)]
    lines += (f"  check {number}: {site}" for number, site in enumerate(kernel.sites))
    for function in kernel.functions:
        lines.append(print_function(function))
    lines += (f"  slot ${number} of {_binding(var)}" for number, var in enumerate(kernel.crossing))
    if kernel.body.stmts:
        lines.append("  body:")
        lines += _block(kernel.body, "    ")
    for task in kernel.tasks:
        lines += _task(task)
    if kernel.flow:
        lines.append(f"  flow {print_flow(kernel.flow)}")
    return "\n".join(lines) + "\n"


def print_effects(effects: tuple[tuple[str, ir.Access], ...]) -> tuple[tuple[str, str], ...]:
    """The effects with letters: ``r`` reads, ``w`` writes, ``a`` updates atomically."""
    return tuple((name, "".join(letter for flag, letter in _EFFECTS if flag in access)) for name, access in effects)


def print_expr(e: ir.Expr) -> str:
    """One expression, in parentheses where it has an operator."""
    match e:
        case ir.Const(value=value, type=t):
            return f"{value!r}:{t.name}"
        case ir.VarRead(var=var):
            return f"%{var.name}"
        case ir.ParamRead(name=name):
            return name
        case ir.Binary(op=op, lhs=lhs, rhs=rhs):
            a, b = print_expr(lhs), print_expr(rhs)
            return f"({a} {_INFIX[op]} {b})" if op in _INFIX else f"{op.value}({a}, {b})"
        case ir.Compare(op=cmp, lhs=lhs, rhs=rhs):
            return f"({print_expr(lhs)} {COMPARISONS[cmp]} {print_expr(rhs)})"
        case ir.Unary(op=unary, operand=x):
            return f"{unary.value}({print_expr(x)})"
        case ir.Select(cond=c, then=a, orelse=b):
            return f"select({_exprs((c, a, b))})"
        case ir.Pick(items=items, at=at):
            return f"pick({print_expr(at)}: {_exprs(items)})"
        case ir.Cast(operand=x, type=t):
            return f"{t.name}({print_expr(x)})"
        case ir.BitCast(operand=x, type=t):
            return f"bits.{t.name}({print_expr(x)})"
        case ir.Intrinsic(name=name, args=args, type=t):
            return f"{name}.{t.name}({_exprs(args)})"
        case ir.Call(function=name, args=args):
            return f"@{name}({_exprs(args)})"
        case ir.ShapeOf(array=array, axis=axis):
            return f"shape({array}, {axis})"
        case ir.SlotRead(number=number, type=t):
            return f"${number}:{t.name}"
        case ir.ThreadIndex():
            return "thread_index"
        case ir.BlockIndex():
            return "block_index"
        case _:
            raise unhandled(e)


def _exprs(exprs: tuple[ir.Expr, ...]) -> str:
    return ", ".join(map(print_expr, exprs))


def _kernel_head(kernel: ir.Kernel) -> str:
    results = ", ".join(t.name for t in kernel.results)
    flags = "".join(f" {name}" for name in ("noalias", "fast_math", "debug", "trusted") if getattr(kernel, name))
    params = ", ".join(map(_param, kernel.params))
    flags += "" if kernel.shadow is None else f" shadow={print_expr(kernel.shadow)}"
    return f"kernel {kernel.name}({params}) -> ({results}) index={kernel.index.name} slots={kernel.slots}{flags}"


def _param(param: ir.Param) -> str:
    match param:
        case ir.ScalarParam(name=name, type=scalar):
            return f"{name}: {scalar.name}"
        case ir.ArrayParam(name=name, type=array, is_field=is_field):
            return f"{'field ' if is_field else ''}{name}: {array!r}"
        case _:
            raise unhandled(param)


def _binding(var: ir.Var) -> str:
    return f"%{var.name}: {var.type.name}"


def print_function(function: ir.Function) -> str:
    """The text of one function."""
    params, results = ", ".join(map(_binding, function.params)), ", ".join(t.name for t in function.results)
    kind = "called function" if function.is_called else "function"
    return "\n".join([f"  {kind} @{function.name}({params}) -> ({results})", *_block(function.body, "    ")])


def _task(task: ir.Task) -> Iterator[str]:
    effects = ", ".join(f"{name}: {letters}" for name, letters in print_effects(effects_of(task)))
    kind = "serial" if isinstance(task, ir.SerialTask) else "parallel"
    gate = "" if task.gate is None else f" gate {task.gate.state} {task.gate.number}"
    yield f"  task {task.name} {kind}{gate} [{effects}]"
    if isinstance(task, ir.ParallelTask):
        if task.block_dim is not None:
            yield f"    block_dim {task.block_dim}"
        for axis in task.axes:
            yield f"    axis {_axis(axis)}"
        for r in task.reductions:
            yield f"    {'' if r.in_launch else 'atomic '}reduce {r.op.value} {_place(r.place)} by {_binding(r.var)}"
        for each in task.privates:
            yield f"    {'' if each.in_launch else 'atomic '}private {each.op.value} {each.array}"
        for array in task.shared:
            yield f"    shared {array.name}: {array.type!r}"
    yield from _block(task.body, "    ")


def _axis(axis: ir.Axis | ir.For) -> str:
    return f"{_binding(axis.var)} in {print_expr(axis.start)} to {print_expr(axis.stop)} by {print_expr(axis.step)}"


def _place(place: ir.Place) -> str:
    match place:
        case ir.Element(array=array, index=index, component=component, chosen=chosen):
            further = (
                f".({component} + {print_expr(chosen)})" if chosen is not None else f".{component}" * (component > 0)
            )
            return f"{array}[{_exprs(index)}]{further}"
        case ir.Slot(number=number, type=t):
            return f"${number}:{t.name}"
        case _:
            raise unhandled(place)


def _block(block: ir.Block, indent: str) -> Iterator[str]:
    for stmt in block.stmts:
        yield from _stmt(stmt, indent)


def _stmt(stmt: ir.Stmt, indent: str) -> Iterator[str]:
    inner = indent + "  "
    match stmt:
        case ir.If(cond=cond, then=then, orelse=orelse):
            yield f"{indent}if {print_expr(cond)}"
            yield from _block(then, inner)
            if orelse.stmts:
                yield f"{indent}else"
                yield from _block(orelse, inner)
        case ir.For(body=body):
            yield f"{indent}for {_axis(stmt)}"
            yield from _block(body, inner)
        case ir.While(head=head, cond=cond, body=body):
            yield f"{indent}while"
            yield from _block(head, inner)
            yield f"{indent}is {print_expr(cond)}"
            yield from _block(body, inner)
        case ir.LabelledBlock(label=label, body=body):
            yield f"{indent}labelled {label}"
            yield from _block(body, inner)
        case ir.Sections(branches=branches):
            for branch in branches:
                yield f"{indent}section"
                yield from _block(branch, inner)
        case ir.DoWhile(condition=condition, body=body):
            yield f"{indent}do while {condition}"
            yield from _block(body, inner)
        case ir.Gate(number=number, body=body):
            yield f"{indent}gate {number}"
            yield from _block(body, inner)
        case ir.ParallelFor(axes=axes, body=body, block_dim=block_dim, name=name):
            options = (f" block_dim={block_dim}" if block_dim else "") + (f" name={name!r}" if name else "")
            yield f"{indent}parallel {', '.join(map(_axis, axes))}{options}"
            yield from _block(body, inner)
        case ir.Mark():
            yield f"{indent}# {type(stmt).__name__.lower()} {stmt.span.line}"
        case _:
            yield indent + _line(stmt)


def _line(stmt: ir.Simple) -> str:
    match stmt:
        case ir.Let(var=var, value=value):
            return f"{_binding(var)} = {print_expr(value)}"
        case ir.Assign(var=var, value=value):
            return f"{_binding(var)} := {print_expr(value)}"
        case ir.AssignOne(options=options, at=at):
            names = ", ".join(_binding(option.var) for option in options)
            return f"one of {print_expr(at)}: {names} := {print_expr(options[0].value)}"
        case ir.Atomic(op=op, place=place, value=value, result=result, expected=expected):
            bound = f"{_binding(result)} = " if result else ""
            wanted = f", expected {print_expr(expected)}" if expected else ""
            return f"{bound}{'update' if stmt.in_launch else 'atomic'} {op.value} {_place(place)}, {print_expr(value)}{wanted}"
        case ir.ReadClock(var=var):
            return f"{_binding(var)} = clock"
        case ir.Locate(var=var, place=place):
            return f"{_binding(var)} = address of {_place(place)}"
        case ir.CallMany(results=results, function=function, args=args):
            return f"{', '.join(map(_binding, results))} = @{function}({_exprs(args)})"
        case ir.Print(ring=ring, message=message, words=words):
            return f"print {message.text} ({_exprs(words)}) to {ring.name}"
        case ir.Fence(reach=reach):
            return "fence" if reach is ir.Reach.BLOCK else f"fence {reach.value}"
        case ir.Wave(op=op, size=size, args=args, result=result, combine=combine):
            bound = f"{_binding(result)} = " if result else ""
            return f"{bound}wave{size}.{op.value}{f'.{combine.value}' if combine else ''}({_exprs(args)})"
        case ir.Fault(check=check, values=values):
            return f"fault {print_expr(check)} ({_exprs(values)})"
        case _:
            return _plain(stmt)


def _plain(stmt: ir.Stmt) -> str:
    """What ``stmt`` binds, its class, and its other fields."""
    kind, bound = type(stmt), ", ".join(map(_binding, bound_by(stmt)))
    given = (_operand(getattr(stmt, name)) for name in kind.__slots__ if name not in kind.BINDS)
    text = f"{kind.__name__.lower()} {', '.join(given)}".rstrip()
    return f"{bound} = {text}" if bound else text


def _operand(value: object) -> str:
    match value:
        case ir.Element() | ir.Slot():
            return _place(value)
        case ir.Node():
            return print_expr(value)  # type: ignore[arg-type]  # all other operands are expressions
        case tuple():
            return ", ".join(map(_operand, value))
        case _:
            return str(value)
