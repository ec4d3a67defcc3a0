"""Statements, and the records that they write for the host: prints in the launch's ring, and the first failed check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadpy.codegen.lower.atomics import atomic_update, lower_atomic
from quadpy.codegen.lower.casts import resize
from quadpy.codegen.lower.chosen import cell_of_one, declare_families, zero_family
from quadpy.codegen.lower.expressions import lower_call, lower_expr, natural_sum, result_type, wide_twin
from quadpy.codegen.lower.gpu.threads import barrier
from quadpy.codegen.lower.gpu.waves import lower_wave
from quadpy.codegen.lower.interleave import loads_ahead, lower_in_groups
from quadpy.codegen.lower.loops import lower_for, lower_while, position, trip_count
from quadpy.codegen.lower.memory import address, load, memory_in, memory_of, store, store_at
from quadpy.codegen.lower.scope import Family, Scope
from quadpy.codegen.lower.text import constant, llvm_type
from quadpy.core.dtypes import Scalar, u64
from quadpy.core.faults import CLAIMED, DONE, FIRST_VALUE, SITE
from quadpy.core.output import CAPACITY_WORD, HEADER_WORDS, LOST_WORD, NEXT_WORD
from quadpy.ir import nodes as ir
from quadpy.ir.nodes import AtomicOp
from quadpy.ir.types import Space
from quadpy.ir.walk import unhandled, walk

if TYPE_CHECKING:
    from collections.abc import Callable


def _mutable_vars(node: ir.Node) -> dict[str, ir.Var]:
    """The variables that ``node`` assigns or reduces into, by name."""
    return {n.var.name: n.var for n in walk(node) if isinstance(n, (ir.Assign, ir.Reduction))}


def declare_variables(s: Scope, node: ir.Node) -> list[ir.Var | Family]:
    """Declare the variables that ``node`` assigns; ``zero_variables`` starts an iteration."""
    found = _mutable_vars(node)
    families = declare_families(s, node, found)
    for family in families:
        for var in family.variables:
            del found[var.name]
    for var in found.values():
        s.cells[var.name] = s.text.alloca(llvm_type(var.type))
    return [*found.values(), *families]


def zero_variables(s: Scope, variables: list[ir.Var | Family]) -> None:
    for each in variables:
        if isinstance(each, Family):
            zero_family(s, each)
        else:
            set_variable(s, each, constant(0, each.type))


def set_variable(s: Scope, var: ir.Var, value: str) -> None:
    s.text.do(f"store {llvm_type(var.type)} {value}, {s.rules.private} {s.cells[var.name]}")


def lower_iteration(s: Scope, body: ir.Block) -> Callable[[], None]:
    """Declare the variables of an iteration; the function that is returned writes its statements."""
    variables = declare_variables(s, body)

    def write() -> None:
        zero_variables(s, variables)
        lower_block(s, body)

    return write


def lower_block(s: Scope, block: ir.Block) -> None:
    """Write the statements up to the first that leaves the block; none after it can run."""
    for stmt in block.stmts:
        if not s.text.open:
            return
        _lower_stmt(s, stmt)


def _lower_stmt(s: Scope, stmt: ir.Stmt) -> None:
    match stmt:
        case ir.Let(var=var, value=value):
            if (twin := wide_twin(s, value)) is not None:
                s.wide[var.name] = twin
            if s.narrow and (parts := natural_sum(s, value)) is not None:
                s.sums[var.name] = parts
            s.values[var.name] = lower_expr(s, value)
        case ir.Assign() | ir.AssignOne():
            _assign(s, stmt)
        case ir.Load(var=var) | ir.ReadClock(var=var) | ir.Locate(var=var):
            s.values[var.name] = _found(s, stmt)
        case ir.Store(place=place, value=value):
            store(s, place, lower_expr(s, value))
        case ir.Atomic():
            lower_atomic(s, stmt)
        case ir.CallMany():
            _call_many(s, stmt)
        case ir.If():
            _if(s, stmt)
        case ir.For(body=body) if loads_ahead(s, body):
            _for_groups(s, stmt)
        case ir.For(body=body):
            lower_for(s, stmt, lambda: lower_block(s, body))
        case ir.While(head=head, body=body):
            lower_while(s, stmt, lambda: lower_block(s, head), lambda: lower_block(s, body))
        case ir.Break():
            s.text.jump(s.loops[-1][0])
        case ir.Continue():
            s.text.jump(s.loops[-1][1] if s.loops else s.iteration)
        case ir.LabelledBlock(label=label, body=body):
            s.labels[label] = s.text.label("region")
            lower_block(s, body)
            s.text.start(s.labels[label])
        case ir.Leave(label=label):
            s.text.jump(s.labels[label])
        case ir.Return():
            _return(s, stmt)
        case ir.Barrier():
            barrier(s)
        case ir.Print() | ir.Fault():
            _report(s, stmt)
        case ir.Fence(reach=reach):
            _fence(s, reach)
        case ir.Wave():
            lower_wave(s, stmt, [lower_expr(s, arg) for arg in stmt.args])
        case ir.ParallelFor() | ir.Sections() | ir.DoWhile() | ir.Gate() | ir.Mark():
            raise AssertionError("the verifier admits no kernel that has not been split")
        case _:
            raise unhandled(stmt)


def _assign(s: Scope, stmt: ir.Assign | ir.AssignOne) -> None:
    if isinstance(stmt, ir.Assign):
        set_variable(s, stmt.var, lower_expr(s, stmt.value))
        return
    at, value, t = lower_expr(s, stmt.at), lower_expr(s, stmt.options[0].value), stmt.options[0].var.type
    if (cell := cell_of_one(s, stmt, at)) is not None:
        s.text.do(f"store {llvm_type(t)} {value}, {s.rules.private} {cell}")
        return
    for number, option in enumerate(stmt.options):
        hit = s.text.op(f"icmp eq {llvm_type(stmt.at.type)} {at}, {number}")
        kept = s.text.op(f"load {llvm_type(t)}, {s.rules.private} {s.cells[option.var.name]}")
        set_variable(s, option.var, s.text.op(f"select i1 {hit}, {llvm_type(t)} {value}, {llvm_type(t)} {kept}"))


def _found(s: Scope, stmt: ir.Load | ir.ReadClock | ir.Locate) -> str:
    """The value in a place, the ticks of the counter, or the address of a place."""
    if isinstance(stmt, ir.Load):
        return load(s, stmt.place)
    if isinstance(stmt, ir.ReadClock):
        return s.text.intrinsic(s.rules.clock, "i64")
    return s.text.op(f"ptrtoint {memory_of(s, stmt.place).pointer} {address(s, stmt.place)} to i64")


def _report(s: Scope, stmt: ir.Print | ir.Fault) -> None:
    if isinstance(stmt, ir.Print):
        lower_print(s, stmt)
    else:
        lower_fault(s, stmt)


def _fence(s: Scope, reach: ir.Reach) -> None:
    """On a CPU a block is one thread, which sees its own writes in order."""
    if s.rules.gpu is not None:
        s.text.do(f"fence {s.rules.gpu.scopes[reach]} acq_rel")
    elif reach is ir.Reach.GRID:
        s.text.do("fence acq_rel")


def _if(s: Scope, stmt: ir.If) -> None:
    out = s.text
    then, orelse, end = out.label("then"), out.label("else"), out.label("endif")
    out.branch(lower_expr(s, stmt.cond), then, orelse if stmt.orelse.stmts else end)
    out.start(then)
    lower_block(s, stmt.then)
    out.jump(end)
    if stmt.orelse.stmts:
        out.start(orelse)
        lower_block(s, stmt.orelse)
        out.jump(end)
    out.start(end)


def _for_groups(s: Scope, stmt: ir.For) -> None:
    t, name = stmt.var.type, stmt.var.name
    start, stop, step = (lower_expr(s, e) for e in (stmt.start, stmt.stop, stmt.step))
    count = resize(s.text, trip_count(s.text, start, stop, step, t), Scalar("", "uint", t.bits), 64)

    def bind(own: Scope, k: str) -> None:
        own.values[name] = position(s.text, start, step, resize(s.text, k, u64, t.bits), t)

    lower_in_groups(s, stmt.body, lower_block, bind, "0", count, "1")


def _call_many(s: Scope, stmt: ir.CallMany) -> None:
    value = lower_call(s, stmt.function, stmt.args)
    results = s.functions[stmt.function].results
    if len(results) == 1:
        s.values[stmt.results[0].name] = value
        return
    for number, var in enumerate(stmt.results):
        s.values[var.name] = s.text.op(f"extractvalue {result_type(results)} {value}, {number}")


def _return(s: Scope, stmt: ir.Return) -> None:
    """A function returns; a kernel puts its results into their memory, or its first slots, and ends its task."""
    values = [(lower_expr(s, value), value.type) for value in stmt.values]
    if s.results is None:
        for number, (value, t) in enumerate(values):
            if s.returned:
                where = s.text.op(f"getelementptr i64, {s.rules.pointer} {s.returned}, i64 {number}")
                store_at(s, where, value, t)
            else:
                store(s, ir.Slot(number, t, span=stmt.span), value)
        s.text.end("ret void")
        return
    s.text.end(f"ret {returned(s, values)}")


def returned(s: Scope, values: list[tuple[str, Scalar]]) -> str:
    """Type and operand of the ``ret``."""
    ty = result_type(s.results or ())
    if len(values) == 1:
        return f"{ty} {values[0][0]}"
    packed = "poison"
    for number, (value, t) in enumerate(values):
        packed = s.text.op(f"insertvalue {ty} {packed}, {llvm_type(t)} {value}, {number}")
    return f"{ty} {packed}"


def lower_print(s: Scope, stmt: ir.Print) -> None:
    """One atomic addition reserves room for the record; a record without room is counted as lost.

    ``runtime.printing.records`` describes its format.

    A record that the end of the ring would cut off writes 0 in place of its key; the host stops reading there.
    """
    out, pointer, memory = s.text, s.rules.pointer, memory_in(s, Space.GLOBAL)
    words = [lower_expr(s, word) for word in stmt.words]
    ring = out.op(f"inttoptr i64 {lower_expr(s, stmt.ring)} to {pointer}")

    def at(number: str) -> str:
        return out.op(f"getelementptr i64, {pointer} {ring}, i64 {number}")

    def put(number: str, value: str) -> None:
        out.do(f"store i64 {value}, {pointer} {at(number)}, align 8")

    first = atomic_update(s, AtomicOp.ADD, at(str(NEXT_WORD)), str(1 + len(words)), u64, memory)
    end = out.op(f"add i64 {first}, {1 + len(words)}")
    capacity = out.op(f"load i64, {pointer} {at(str(CAPACITY_WORD))}, align 8")
    room, full, cut, counted, done = (out.label(f"print.{name}") for name in ("room", "full", "cut", "lost", "done"))
    out.branch(out.op(f"icmp ule i64 {end}, {capacity}"), room, full)
    out.start(room)
    start = out.op(f"add i64 {first}, {HEADER_WORDS}")
    for number, word in enumerate((_signed(stmt.message.key), *words)):
        put(out.op(f"add i64 {start}, {number}"), word)
    out.jump(done)
    out.start(full)
    out.branch(out.op(f"icmp ult i64 {first}, {capacity}"), cut, counted)
    out.start(cut)
    put(out.op(f"add i64 {first}, {HEADER_WORDS}"), "0")
    out.start(counted)
    if not stmt.message.begins:
        atomic_update(s, AtomicOp.ADD, at(str(LOST_WORD)), "1", u64, memory)
    out.start(done)


def _signed(key: int) -> str:
    """``key`` as LLVM writes 64 bits."""
    return str(key - (1 << 64) if key >> 63 else key)


def lower_fault(s: Scope, stmt: ir.Fault) -> None:
    """Claim the record, and fill it if this was the first."""
    out, pointer = s.text, s.rules.pointer
    first, done = out.label("fault"), out.label("fault.done")
    record = out.op(f"inttoptr i64 {lower_expr(s, stmt.record)} to {pointer}")
    words = {SITE: lower_expr(s, stmt.check)}
    words |= {FIRST_VALUE + number: lower_expr(s, value) for number, value in enumerate(stmt.values)}
    claimed = out.op(f"getelementptr i64, {pointer} {record}, i64 {CLAIMED}")
    order = f"{s.rules.scope} monotonic"  # on success, and on failure
    pair = out.op(f"cmpxchg {pointer} {claimed}, i64 0, i64 1 {order}, align 8")
    out.branch(out.op(f"extractvalue {{ i64, i1 }} {pair}, 1"), first, done)
    out.start(first)
    for number, value in (words | {DONE: "1"}).items():
        at = out.op(f"getelementptr i64, {pointer} {record}, i64 {number}")
        out.do(f"store volatile i64 {value}, {pointer} {at}, align 8")
    out.jump(done)
    out.start(done)
