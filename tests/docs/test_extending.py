"""A toy of each kind that the guide "How to add …" names, in a copy of quadpy: small, and in the files of the guide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trial import Trial

GUIDE = Path(__file__).parents[2] / "docs/guides/extending.md"
MOST = 100
"""Lines that a toy may touch."""


def files_of(section: str) -> set[str]:
    """The files that the guide's tables for ``section`` name."""
    text = GUIDE.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    cells = re.findall(r"^\| (`.*?) \|", found, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(quadpy/[^`]+)`", cell)}


@pytest.fixture
def trial(tmp_path):
    return Trial(tmp_path)


def check(trial: Trial, section: str, most: int = MOST) -> None:
    """The toy is small, and the guide names its files."""
    assert sum(trial.lines.values()) < most, trial.lines
    named = files_of(section)
    patterns = [re.sub(r"<\w+>", r"\\w+", name) for name in named]
    missing = [file for file in trial.lines if not any(re.fullmatch(pattern, file) for pattern in patterns)]
    assert missing == [], named


def test_a_function_of_the_language(trial):
    """``sinh2``: one row, and its library function."""
    trial.add(
        "intrinsics/math.py",
        'Row("sinh2", "x", "Hyperbolic sine, squared.", Library("hyperbolic"), _FLOATS),\n',
        before='        Row("sinh", ',
        indent=8,
    )
    trial.add(
        "mathlib/hyperbolic.py",
        '''


        @library(ulp=4.0)
        def sinh2(x: Float) -> Float:
            """The square of the hyperbolic sine of ``x``."""
            root = sinh(x)
            return root * root
        ''',
    )
    trial.run("""
        import numpy as np
        import quadpy as qp
        from quadpy.jit.offline import compile_for
        from quadpy.mathlib.registry import lookup
        from quadpy.core.target import parse_target

        F = qp.types.ndarray(dtype=qp.f32, ndim=1)

        @qp.kernel
        def square(x: F):
            for i in x:
                x[i] = qp.sinh2(x[i])

        x = np.linspace(-2, 2, 9, dtype=np.float32)
        expected = np.sinh(x.astype(np.float64)) ** 2
        square(x)
        assert np.allclose(x, expected, rtol=1e-6), x
        assert all(compile_for(square, parse_target(name), {}).image for name in ("gfx942", "sm_90"))
        assert "sinh2" in qp.__all__ and "sinh2(x)" in qp.sinh2.__doc__
        assert lookup("sinh2", (qp.f64,)) is not None
    """)
    check(trial, "A function of the language")


def test_instructions_of_any_shape(trial):
    """``brev`` takes one integer, ``saturated_sub`` two and ``larger`` two floats: a row, and what Python computes."""
    trial.add(
        "intrinsics/math.py",
        """
        Row("brev", "x", "The bits of x in reverse order.", Llvm("bitreverse"), _INTEGERS),
        Row("saturated_sub", "x, y", "x - y, or 0 where that is negative.", Llvm("usub.sat"), _INTEGERS),
        Row("larger", "x, y", "The larger of x and y, NaN if one of them is.", Llvm("maximum"), _FLOATS),
        """,
        before='        Row("popcnt", ',
        indent=8,
    )
    trial.add(
        "interpreter/expressions.py",
        """
        def _brev(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
            return f"{constructor(t)}({int.__name__}{OWN}(f'{{{_natural(args[0], t)}:0{t.bits}b}}'[::-1], 2))"


        def _saturated_sub(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
            return f"{constructor(t)}(max{OWN}(int{OWN}({args[0]}) - int{OWN}({args[1]}), 0))"


        def _larger(e: Expressions, args: list[str], t: Scalar, result: Scalar) -> str:
            return e.call(np.maximum, *args)


        """,
        before="INTRINSICS: Final",
    )
    trial.replace(
        "interpreter/expressions.py",
        '    "rsqrt_seed": _rsqrt_seed,\n}',
        '    "rsqrt_seed": _rsqrt_seed, "brev": _brev, "saturated_sub": _saturated_sub, "larger": _larger,\n}',
    )
    trial.run("""
        import numpy as np
        import quadpy as qp
        from quadpy.jit.offline import compile_for
        from quadpy.core.target import parse_target

        F, U = (qp.types.ndarray(dtype=t, ndim=1) for t in (qp.f32, qp.u32))

        def change(x: F, y: F, n: U):
            for i in n:
                n[i] = qp.saturated_sub(qp.brev(n[i]), qp.u32(1 << 30))
                x[i] = qp.larger(x[i], y[i])
                y[i] = qp.f32(qp.larger(qp.bf16(y[i]), qp.bf16(2.0)))

        for kernel in (qp.kernel(change), qp.kernel(change)):
            x, y, n = np.float32([1, 2, np.nan]), np.float32([3, 1, 1]), np.uint32([1, 2, 3])
            kernel(x, y, n)
            assert n.tolist() == [1 << 30, 0, 2 << 30], n
            assert x.tolist()[:2] == [3, 2] and np.isnan(x[2]) and y.tolist() == [3, 2, 2], (x, y)
            for name in ("gfx942", "sm_90"):
                assert compile_for(kernel, parse_target(name), {}).image
            qp.init(arch=qp.python)
    """)
    check(trial, "A function of the language")


def test_a_type(trial):
    """Complex numbers: a kind of value with ``+``, ``*``, ``re`` and ``im``, made by ``qp.complex_of(re, im)``."""
    values = "lang/values.py"
    trial.add(
        values,
        '''
        @dataclass(frozen=True, slots=True)
        class Complex:
            """A complex number."""

            re: Expr
            im: Expr


        ''',
        before="Traced: TypeAlias",
    )
    trial.replace(values, "Traced: TypeAlias = Expr | Vec |", "Traced: TypeAlias = Expr | Complex | Vec |")
    trial.add(values, "COMPLEX = enum.auto()\n", before="    SEQUENCE = enum.auto()", indent=4)
    trial.replace(values, "(Node, Kind.SCALAR), ", "(Node, Kind.SCALAR), (Complex, Kind.COMPLEX), ")
    trial.replace(
        values,
        "isinstance(value, (Node, Vec, Record, ArrayRef,",
        "isinstance(value, (Node, Complex, Vec, Record, ArrayRef,",
    )
    trial.add(
        values,
        """
        case Complex():
            return f"complex {value.re.type}"
        """,
        before="        case ArrayRef():",
        indent=8,
    )
    trial.add(
        "lang/complex_numbers.py",
        '''
        """Complex numbers in the trace."""

        from __future__ import annotations

        import ast

        from quadpy.lang.arithmetic import scalar_binary
        from quadpy.lang.context import Trace
        from quadpy.lang.scalars import meet, to_scalar
        from quadpy.lang.values import Complex, Value
        from quadpy.core.source import Span

        __all__ = ["complex_attribute", "complex_binary", "complex_of"]


        def complex_of(t: Trace, span: Span, re: Value, im: Value) -> Complex:
            parts = meet(t, to_scalar(t, re, span), to_scalar(t, im, span), span)
            return Complex(*map(t.build.freeze, parts))


        def complex_binary(t: Trace, op: type[ast.operator], a: Value, b: Value, span: Span) -> Value:
            def combined(op: type[ast.operator], x: Value, y: Value) -> Value:
                return scalar_binary(t, op, x, y, span)

            x, y = (each if isinstance(each, Complex) else complex_of(t, span, each, 0) for each in (a, b))
            if op is ast.Add:
                return complex_of(t, span, combined(op, x.re, y.re), combined(op, x.im, y.im))
            if op is ast.Mult:
                re = combined(ast.Sub, combined(op, x.re, y.re), combined(op, x.im, y.im))
                return complex_of(t, span, re, combined(ast.Add, combined(op, x.re, y.im), combined(op, x.im, y.re)))
            t.fail_type("complex numbers have + and * only", span)


        def complex_attribute(t: Trace, value: Complex, name: str, span: Span) -> Value:
            if name not in ("re", "im"):
                t.fail_type(f"a complex number has no attribute {name!r}", span)
            return value.re if name == "re" else value.im
        ''',
    )
    anchors = {"complex_binary": "_by_component", "complex_attribute": "_vector_attribute"}
    for file, name in (("operators", "complex_binary"), ("access", "complex_attribute")):
        trial.add(
            f"lang/{file}.py", f"from quadpy.lang.complex_numbers import {name}\n", before="from quadpy.lang.context"
        )
        trial.add(f"lang/{file}.py", f"Kind.COMPLEX: {name},\n", before=f"    Kind.VECTOR: {anchors[name]}", indent=4)
    trial.add(
        "lang/intrinsics.py", "from quadpy.lang.complex_numbers import complex_of\n", before="from quadpy.lang.context"
    )
    trial.add("lang/intrinsics.py", '"complex_of": complex_of,\n', before='    "abs": _abs', indent=4)
    trial.add(
        "intrinsics/control.py",
        'Row("complex_of", "re, im", "The complex number re + i im.", Traced()),\n',
        before='        Row("zero"',
        indent=8,
    )
    trial.run("""
        import numpy as np
        import quadpy as qp

        @qp.kernel
        def rotate(x: qp.types.ndarray(dtype=qp.f32, ndim=2)):
            for k in range(x.shape[0]):
                z = qp.complex_of(x[k, 0], x[k, 1]) * qp.complex_of(0.0, 1.0) + 1
                x[k, 0], x[k, 1] = z.re, z.im

        x = np.array([[1, 2], [3, -4]], np.float32)
        rotate(x)
        assert x.tolist() == [[-1, 1], [5, 3]], x
    """)
    check(trial, "A type")


def test_a_statement(trial):
    """``Put``, equal to ``Store``: every analysis knows what it touches."""
    trial.add(
        "ir/statements.py",
        """
        @dataclass(frozen=True, slots=True)
        class Put(Node):
            CHILDREN = ("place", "value")
            READS, WRITES, BINDS, ORDERS = (), ("place",), (), ()
            place: Place
            value: Expr


        """,
        before="Simple: TypeAlias",
    )
    trial.replace("ir/statements.py", "Let | Assign | AssignOne |", "Let | Put | Assign | AssignOne |")
    trial.replace("ir/statements.py", '"Print", "Reach"', '"Print", "Put", "Reach"')
    for file, written in (
        ("codegen/lower/statements.py", "store(s, place, lower_expr(s, value))"),
        ("interpreter/statements.py", "self.store(place, self.text(value))"),
    ):
        indent = 8 if file.startswith("codegen") else 12
        text = f"case ir.Put(place=place, value=value):\n    {written}\n"
        trial.add(file, text, before=f"{' ' * indent}case ir.Store(", indent=indent)
    trial.replace(
        "lang/arrays.py",
        "t.build.emit(ir.Store(place, item, span=span))",
        "t.build.emit(ir.Put(place, item, span=span))",
    )
    trial.run("""
        import warnings
        import numpy as np
        import quadpy as qp
        from quadpy.errors import RaceWarning
        from quadpy.ir import nodes as ir
        from quadpy.ir.footprints import footprints_of
        from quadpy.ir.printer import print_ir
        from quadpy.ir.races import races_of
        from quadpy.jit.offline import compile_for, trace_for
        from quadpy.core.target import parse_target

        I = qp.types.ndarray(dtype=qp.i32, ndim=1)

        @qp.kernel
        def fill(x: I, begin: qp.i32, end: qp.i32):
            for i in range(begin, end):
                x[i] = i

        @qp.kernel
        def double(x: I, y: I):
            for i in range(8):
                y[i] = 2 * x[i]

        @qp.kernel
        def shift(x: I):
            for i in range(1, 8):
                x[i - 1] = x[i]

        def kernel_of(kernel):
            return trace_for(kernel, {}, parse_target("cpu")).kernel

        (task,) = kernel_of(double).tasks
        assert "put y[%i], " in print_ir(kernel_of(double))
        (read, written) = footprints_of(task)
        assert (written.array, written.access, written.box.exact) == ("y", ir.Access.WRITE, read.box.exact)
        assert not type(races_of(task)["y"]).__name__ == "Unknown"
        for target in ("cpu", "gfx942", "sm_90"):
            code = compile_for(double, parse_target(target), {})
            assert code.tasks[0].effects == (("x", "r"), ("y", "w")) and code.written == {"y"}

        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            shift(np.zeros(8, np.int32))
        assert [each.category for each in found] == [RaceWarning]

        x, y = (qp.ndarray(qp.i32, shape=8) for _ in range(2))
        with qp.graph.capture() as g:
            fill(x, 0, 8)
            double(x, y)
        assert g.inspect().edges == (("fill", "double"),)
        with qp.create_stream() as s1, qp.create_stream() as s2, qp.hazards.check(collect=True) as hazards:
            fill(x, 0, 4, stream=s1)
            fill(x, 4, 8, stream=s2)
            assert not hazards.certain and not hazards.possible
            double(x, y, stream=s1)
        assert [h.kind for h in hazards.certain] == ["read after write"]
        for arch in (qp.cpu, qp.python):
            qp.init(arch=arch)
            x, y = np.zeros(8, np.int32), np.zeros(8, np.int32)
            fill(x, 0, 8)
            double(x, y)
            assert y.tolist() == list(range(0, 16, 2))
        qp.init(arch=qp.cpu, debug=True)
        try:
            shift(np.zeros(8, np.int32))
        except qp.KernelRaceError as error:
            assert "writes" in str(error)
        else:
            raise AssertionError("the race was not found")
    """)
    check(trial, "A statement", most=30)
    assert len(trial.lines) <= 4


def test_a_pass(trial):
    """``drop_double_negations``: -(-x) becomes x."""
    trial.add(
        "ir/passes/double_negations.py",
        '''
        """Drops negations of negations."""

        from __future__ import annotations

        from quadpy.ir import nodes as ir
        from quadpy.ir.walk import map_children

        __all__ = ["drop_double_negations"]


        def drop_double_negations(kernel: ir.Kernel) -> ir.Kernel:
            """``kernel`` with ``x`` for each ``-(-x)``."""
            return map_children(kernel, _visit)


        def _visit(node: ir.Node) -> ir.Node:
            node = map_children(node, _visit)
            match node:
                case ir.Unary(op=ir.UnOp.NEG, operand=ir.Unary(op=ir.UnOp.NEG, operand=inner)):
                    return inner
                case _:
                    return node
        ''',
    )
    trial.add(
        "ir/pipeline.py",
        "from quadpy.ir.passes.double_negations import drop_double_negations\n",
        before="from quadpy.ir.nodes import Kernel",
    )
    trial.replace(
        "ir/pipeline.py",
        "TASK_PASSES: Final = (\n",
        'TASK_PASSES: Final = (\n    Pass("drop_double_negations", drop_double_negations, "makes -(-x) x"),\n',
    )
    trial.run("""
        import quadpy as qp

        @qp.kernel
        def twice(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in x:
                y = -x[i]
                x[i] = -(-y)
    """)
    assert "drop_double_negations" in trial.command("inspect", "--passes")
    names = "trace", "drop_double_negations"
    before, after = (trial.command("inspect", "program.py:twice", "--after", name) for name in names)
    assert (before.count("neg"), after.count("neg")) == (3, 1)
    check(trial, "A pass")


def test_a_processor(trial):
    """A processor of a known generation is one row."""
    trial.add("core/target.py", '_rdna("gfx1031", "rdna2", 1024),\n', before='    _rdna("gfx1100"', indent=4)
    trial.run("""
        import quadpy as qp
        from quadpy.codegen.objects.metadata import read_metadata

        @qp.kernel
        def scale(x: qp.types.ndarray(dtype=qp.f32, ndim=1), total: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in x:
                x[i] = qp.sin(2.0 * x[i])
            for i in x:
                total[0] += x[i]

        image = scale.compile("gfx1031").image
        assert read_metadata(image).target.endswith("gfx1031")
    """)
    check(trial, "A target")


def test_a_way_to_launch(trial):
    """``CountingPlan`` counts the calls of a kernel on the CPU."""
    trial.add(
        "jit/counting_plan.py",
        '''
        """Counts the calls of a kernel."""

        from __future__ import annotations

        from quadpy.core.artifact import CodeObject
        from quadpy.jit.plan import Footprints, Plan, Values, Views
        from quadpy.runtime.arrays.field_memory import FieldMemory
        from quadpy.runtime.launch.fusion import Fusion
        from quadpy.runtime.launch.launch import HostLaunch, Prepared
        from quadpy.runtime.streams.stream import Stream

        __all__ = ["CountingPlan"]


        class CountingPlan:
            """A ``Plan`` that launches through another one."""

            def __init__(self, plan: Plan) -> None:
                self._plan, self.calls = plan, 0

            @property
            def code(self) -> CodeObject:
                return self._plan.code

            @property
            def fields(self) -> tuple[FieldMemory, ...]:
                return self._plan.fields

            @property
            def footprints(self) -> Footprints:
                return self._plan.footprints

            def run(self, values: Values, views: Views, stream: object) -> object:
                """As ``Plan.run``."""
                self.calls += 1
                return self._plan.run(values, views, stream)

            def prepare(self, values: Values, views: Views, stream: Stream | None = None) -> Prepared | HostLaunch:
                """As ``Plan.prepare``."""
                return self._plan.prepare(values, views, stream)

            def apart(self, values: Values) -> Plan:
                """As ``Plan.apart``."""
                return CountingPlan(self._plan.apart(values))

            def fusion(self, values: Values) -> Fusion:
                """As ``Plan.fusion``."""
                return self._plan.fusion(values)
        ''',
    )
    trial.add(
        "jit/plan_maker.py",
        "from quadpy.jit.counting_plan import CountingPlan\n",
        before="from quadpy.jit.cpu_plan import CpuPlan",
    )
    trial.replace(
        "jit/plan_maker.py",
        "            return plan\n        tasks",
        "            return CountingPlan(plan)\n        tasks",
    )
    trial.run("""
        import numpy as np
        import quadpy as qp
        from quadpy.jit.counting_plan import CountingPlan
        import gc

        @qp.kernel
        def total(x: qp.types.ndarray(dtype=qp.f32, ndim=1)) -> qp.f32:
            s = 0.0
            for i in x:
                s += x[i]
            return s

        x = np.ones(100, np.float32)
        assert [total(x) for _ in range(3)] == [100.0] * 3
        (plan,) = [found for found in gc.get_objects() if isinstance(found, CountingPlan)]
        assert plan.calls == 3
    """)
    check(trial, "A launch plan")


def test_a_node_of_graphs(trial):
    """``add_note`` prints a line when the graph comes there."""
    trial.replace(
        "graph/model/nodes.py",
        "@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)\nclass EmptyNode(Node):",
        "@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)\n"
        'class NoteNode(Node):\n    """Prints ``text``."""\n\n'
        '    kind: ClassVar[str] = "note"\n\n    text: str\n\n\n'
        "@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)\nclass EmptyNode(Node):",
    )
    trial.add(
        "graph/building/builder.py",
        '''
        def add_note(self, text: str, *, deps: Dependencies = None, name: str | None = None) -> Node:
            """Add a node that prints ``text``."""
            return self._add(NoteNode(text=text, barrier=True), deps, name, "note")

        ''',
        before="    def add_child(",
        indent=4,
    )
    trial.replace("graph/building/builder.py", "FreeNode, Node\n", "FreeNode, Node, NoteNode\n")
    trial.replace("graph/engines/lowering.py", "    Node,\n", "    Node,\n    NoteNode,\n")
    trial.add(
        "graph/engines/lowering.py",
        """
        case NoteNode():
            return [DriverNode(resources.call(print, node.text))]
        """,
        before="        case EventRecordNode():",
        indent=8,
    )
    trial.replace("graph/engines/host.py", "    Node,\n", "    Node,\n    NoteNode,\n")
    trial.add(
        "graph/engines/host.py",
        """
        case NoteNode():
            return HostCall(print, (node.text,), self._failures, self._runs).run_here
        """,
        before="            case ChildNode():",
        indent=12,
    )
    printed = trial.run("""
        from quadpy.graph import Graph
        from quadpy.runtime.device.device import Device
        from quadpy.runtime.drivers.cpu import CpuDriver
        from simulated_gpu.driver import RecordingDriver

        for driver in (CpuDriver(), RecordingDriver()):
            device = Device(driver)
            graph = Graph(device)
            graph.add_note("first")
            graph.add_note("second")
            assert [(node.kind, node.after) for node in graph.inspect().nodes] == [("note", ()), ("note", ("note",))]
            with graph.instantiate() as run:
                run.launch()
                run.synchronize()
    """)
    assert printed.split() == ["first", "second"] * 2
    check(trial, "A graph node")
