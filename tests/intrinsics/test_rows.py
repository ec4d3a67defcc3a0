"""Every row has an answer for every family of targets, and everything that is made from the rows covers them."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
from typing import get_args

import pytest

import quadpy as qp
from quadpy.codegen.compile import lower
from quadpy.codegen.lower.expressions import EMITTED
from quadpy.codegen.lower.gpu.fast_math import APPROXIMATED
from quadpy.core.dtypes import f32, f64, i32
from quadpy.core.source import NOWHERE
from quadpy.core.target import Family, parse_target
from quadpy.errors import CodegenError
from quadpy.intrinsics import BUILTINS, BY_NAME, GROUPS, INSTRUCTIONS, INTERNAL, ROWS, rows as kinds
from quadpy.intrinsics.rows import (
    Effect,
    Emitted,
    Library,
    Llvm,
    Operator,
    Row,
    Syntax,
    Traced,
    Types,
    Unsupported,
    Update,
)
from quadpy.ir import nodes as ir
from quadpy.ir.verify import verify
from quadpy.jit.offline import trace_for
from quadpy.lang.graph_blocks import FORMS
from quadpy.lang.intrinsics import RULES, TRACED
from quadpy.mathlib.registry import HOMES, lookup, overloads

FAMILIES = get_args(Family)
TARGETS = {"cpu": "cpu", "amdgpu": "gfx942", "nvptx": "sm_90"}
IDS = [row.name for row in ROWS]


def test_names_are_unique_and_documented():
    assert len(BY_NAME) == len(ROWS)
    assert all(row.doc.endswith(".") for row in ROWS)
    assert set(BUILTINS) == {row.name for rows in GROUPS.values() for row in rows}


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_every_row_has_an_answer_for_every_family(row):
    for family in FAMILIES:
        check_answer(row, row.on(family))


def check_answer(row, answer):
    match answer:
        case Library(module=module):
            assert HOMES[row.name] == module
            assert overloads(row.name)
            if row.types is Types.FLOATS:
                assert all(lookup(row.name, (t,) * row.arity) for t in (f32, f64))
        case Operator(op=op):
            assert op in {each.value for each in (ir.UnOp if row.arity == 1 else ir.BinOp)}
        case Update(op=op):
            assert row.name == f"atomic_{ir.AtomicOp(op).value}"
            assert row.effects == Effect.UPDATES
        case Llvm() | Emitted():
            assert row.name in INSTRUCTIONS
            assert row.types is not Types.OWN
        case Traced():
            assert row.name in TRACED
            assert row.types is Types.OWN
        case Syntax(form=form):
            assert f"qp.{row.name}" in form
        case Unsupported(why=why):
            assert why
        case other:
            pytest.fail(f"{other} is not a lowering")


def test_no_table_names_what_is_no_row():
    assert set(EMITTED) == {row.name for row in ROWS for family in FAMILIES if isinstance(row.on(family), Emitted)}
    assert set(TRACED) == {row.name for row in ROWS if isinstance(row.lowering, Traced)} | {"pow", "sincos"}
    assert set(RULES) == set(BUILTINS) | {
        name
        for name, builtin in INTERNAL.items()
        if builtin.row.is_instruction or isinstance(builtin.row.lowering, Traced)
    }
    assert set(FORMS) < {row.name for row in ROWS if isinstance(row.lowering, Syntax)}
    assert all(isinstance(BY_NAME[name].lowering, Library) for name in APPROXIMATED)


@pytest.mark.parametrize("row", [row for row in ROWS if isinstance(row.lowering, Traced)], ids=lambda row: row.name)
def test_a_function_of_the_trace_takes_the_parameters_of_its_row(row):
    _, _, *given = inspect.signature(TRACED[row.name]).parameters.values()
    shown = ast.parse(f"def f({row.parameters}): ...").body[0].args
    if shown.vararg:
        assert given[0].kind is inspect.Parameter.VAR_POSITIONAL
    else:
        assert len(given) == len(shown.args)
        assert sum(p.default is not inspect.Parameter.empty for p in given) == len(shown.defaults)


def test_rows_are_data():
    """Nothing in a row can run, and nothing in their package loads LLVM, a driver or the IR."""
    assert {*Row._fields} >= {"name", "doc", "lowering", "types", "effects", "derivative"}
    for row in ROWS:
        assert hash(row._replace(lowering=Traced())) is not None
        assert not any(map(callable, (row.name, row.parameters, row.doc, row.lowering, row.effects)))
    assert {cls.__name__ for cls in get_args(kinds.Lowering)} <= set(kinds.__all__)


def test_only_pure_rows_are_instructions():
    assert all(not row.effects for row in INSTRUCTIONS.values())


HEAD = """
import quadpy as qp
F, N = (qp.types.ndarray(dtype=t, ndim=1) for t in (qp.f32, qp.i32))

@qp.kernel
def everything(x: F, n: N, out: F):
    for i in x:
"""
PURE = [row for row in ROWS if row.types is not Types.OWN and row.name in BUILTINS]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_with_a_rule_of_types_is_called_and_lowered(family, tmp_path):
    """One kernel calls them all; its module is text of LLVM's for each family."""
    lines = []
    for k, row in enumerate(PURE):
        x = "x[i]" if row.types is Types.FLOATS else "n[i]"
        lines.append(f"        out[{k}] = qp.{row.name}({', '.join([x] * row.arity)})")
    file = tmp_path / "everything.py"
    file.write_text(HEAD + "\n".join(lines), encoding="utf-8")
    module = runpy.run_path(str(file))
    target = parse_target(TARGETS[family])
    kernel = trace_for(module["everything"], {}, target).kernel
    assert {f.name.partition(".")[0] for f in kernel.functions} >= {
        r.name for r in PURE if isinstance(r.lowering, Library)
    }
    text = lower(kernel, target)
    for row in PURE:
        if isinstance(row.on(family), Llvm):
            assert f"@llvm.{row.on(family).name}." in text


def intrinsic(name, *args, type=i32):
    """A kernel that stores the value of one intrinsic."""
    at = {"span": NOWHERE}
    value = ir.Let(ir.Var("v", type), ir.Intrinsic(name, args, type, **at), **at)
    task = ir.SerialTask("t", ir.Block((value,), **at), **at)
    return ir.Kernel("k", (), (), (), ir.Block((), **at), (task,), **at)


def test_an_intrinsic_that_is_no_row_is_refused():
    one = ir.Const(1, i32, span=NOWHERE)
    verify(intrinsic("popcnt", one))
    for name in ("sinh2", "sin", "atomic_add"):
        with pytest.raises(CodegenError, match=f"there is no intrinsic '{name}'"):
            verify(intrinsic(name, one))
    with pytest.raises(CodegenError, match="'popcnt' with 2 operands"):
        verify(intrinsic("popcnt", one, one))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (Unsupported("it has no waves"), qp.KernelTypeError, "qp.twice does not exist on {}: it has no waves"),
        (Traced(), CodegenError, "{} has no instruction for 'twice'"),
    ],
    ids=["unsupported", "no instruction"],
)
def test_code_generation_refuses_what_it_has_no_instruction_for(family, answer, error, message, monkeypatch):
    """A row that the verifier admits, but no table of code generation knows, never becomes another instruction."""
    every = {other: Emitted() for other in FAMILIES}
    row = Row("twice", "x", "Twice x.", {**every, family: answer}, Types.INTEGERS)
    assert row.is_instruction
    monkeypatch.setitem(INSTRUCTIONS, "twice", row)
    target = parse_target(TARGETS[family])
    with pytest.raises(error, match=message.format(family)):
        lower(intrinsic("twice", ir.Const(1, i32, span=NOWHERE)), target)


def test_an_emitted_row_without_an_entry_is_refused(monkeypatch):
    monkeypatch.setitem(INSTRUCTIONS, "twice", Row("twice", "x", "Twice x.", Emitted(), Types.INTEGERS))
    with pytest.raises(CodegenError, match="cpu has no instruction for 'twice'"):
        lower(intrinsic("twice", ir.Const(1, i32, span=NOWHERE)), parse_target("cpu"))


def test_builtins_without_a_meaning_on_the_host_refuse_to_run_there():
    for name, builtin in BUILTINS.items():
        if not builtin.row.is_kernel_only or name in ("ndrange", "static") or name.endswith("group_size"):
            continue
        with pytest.raises(qp.KernelSyntaxError, match=re.escape(f"{name} exists inside kernels only")):
            builtin()


@qp.kernel
def one_argument(o: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    for i in o:
        o[i] = qp.select(1)


def test_wrong_arguments_name_the_signature_of_the_row():
    with pytest.raises(qp.KernelTypeError) as error:
        trace_for(one_argument, {})
    assert "select(cond, a, b): a if cond is true" in error.value.hint
