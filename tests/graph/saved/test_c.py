"""Saved graphs in C: the same bits as live, what is refused and how, GPUs by libraries that log their calls."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import c_reader
import numpy as np
import pytest
from c_reader import FOLDER, STRICT, Reader, changed, zipped
from hip_library import compiler
from saved_cases import CASES, loops
from saved_fusion import moving

import quadpy as qp
from quadpy.core.formula import formula_from_json
from quadpy.graph.saved.container import MANIFEST, unpacked
from quadpy.jit.formula import compile_formula

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries for Linux")
HERE = "arm64" if os.uname().machine == "aarch64" else "x86-64"
N = 1000
f32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def waves(a: qp.f32, x: f32, y: f32):
    for i in x:
        y[i] += a * qp.sin(x[i])


@qp.kernel
def total(y: f32, s: f32):
    for i in y:
        s[0] += y[i]


@qp.kernel
def weighted(y: f32, w: f32):
    for i in w:
        y[i] = y[i] * w[i]


@qp.kernel
def rounds(y: f32):
    qp.loop_config(block_dim=64)
    for i in range(y.shape[0]):
        pad = qp.simt.block.SharedArray((64,), qp.f32)
        pad[i % 64] = y[i]
        qp.simt.block.sync()
        y[i] = y[i] + pad[63 - i % 64]


@qp.kernel
def doubled(x: f32):
    for i in x:
        x[i] *= 2.0


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y += a sin x; copies to memory of the graph and back; y *= constant; s += sum of y."""
    qp.init(arch=qp.cpu)
    x, y, s, inside = (qp.ndarray(qp.f32, shape=(n,)) for n in (N, N, 1, 8))
    w = qp.ndarray(qp.f32, shape=(8,))
    w.from_numpy(np.arange(8, dtype=np.float32) * 0.5)
    graph = qp.graph.Graph()
    graph.add_memset(s, 0)
    graph.add_kernel(waves, 2.0, x, y)
    graph.add_kernel(weighted, y, w)
    graph.add_kernel(total, y, s)
    path = tmp_path_factory.mktemp("saved") / "step.qpg"
    del inside
    graph.save(path, targets=["x86-64", "arm64", "gfx942", "sm_80"], bind={"x": x, "y": y, "s": s}, constants=[w])
    qp.reset()
    return path


def arguments(n: int = N) -> dict[str, np.ndarray]:
    x = np.linspace(-3, 9, n, dtype=np.float32)
    return {"x": x, "y": np.cos(x), "s": np.full(1, 7, np.float32)}


def refusal(source: bytes, **arrays: np.ndarray) -> str:
    """What the reader says against ``source``, or a run of it with ``arrays``; empty for nothing."""
    try:
        with Reader(source, "cpu") as reader:
            if arrays:
                reader.run(**arrays)
    except ValueError as error:
        return str(error)
    return ""


def live(**arrays: np.ndarray) -> dict[str, np.ndarray]:
    arrays["s"][:] = 0
    waves(2.0, arrays["x"], arrays["y"])
    weighted(arrays["y"], np.arange(8, dtype=np.float32) * 0.5)
    total(arrays["y"], arrays["s"])
    return arrays


@pytest.mark.parametrize("n", [8, N, 20_000])
@pytest.mark.parametrize("threads", [0, 1])
def test_c_computes_the_bits_of_live_calls(saved, n, threads):
    with Reader(saved, "cpu") as reader:
        reader.threads(threads)
        assert reader.target() == f"cpu:{HERE}"
        mine, theirs = arguments(n), live(**arguments(n))
        reader.run(**mine)
        for name, array in theirs.items():
            assert array.tobytes() == mine[name].tobytes(), name
        reader.run()
        theirs = live(**theirs)
        assert theirs["s"].tobytes() == mine["s"].tobytes()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_c_runs_what_python_saves(case, tmp_path):
    """Captures, fields, structs, memory of the graph, loops on memory, child graphs, parts of arrays."""
    graph, bind, memory = case()
    graph.save(tmp_path / "case.qpg", bind=bind, targets=[HERE], **memory)
    theirs = {name: np.array(array.to_numpy()) for name, array in bind.items()}
    with graph.instantiate() as live, Reader(tmp_path / "case.qpg", "cpu") as reader:
        ranks = {a.name.decode(): a.rank for a in reader.arrays()}
        for name, array in theirs.items():
            reader.bind(name, array.ctypes.data, *array.shape[: ranks[name]])
        for _ in range(2):
            live.launch()
            live.synchronize()
            reader.run()
            for name, array in bind.items():
                assert array.to_numpy().tobytes() == theirs[name].tobytes(), name


@pytest.mark.parametrize("kept", ["format1", "format1-fused"])
def test_a_kept_file_of_format_1_runs(kept):
    x, y, z = np.arange(5, dtype=np.float32), np.ones(5, np.float32), np.zeros(5, np.float32)
    more = {name: np.array([6, 7, 27], np.int32) for name in ("n", "turns") if kept != "format1"}
    with Reader(Path(__file__).with_name(f"{kept}.qpg"), HERE) as reader:
        reader.run(x=x, y=y, z=z, **more)
    np.testing.assert_array_equal(z, 1 + 2.5 * np.arange(5, dtype=np.float32))


def test_arrays_are_described(saved):
    with Reader(saved, HERE) as reader:
        by_name = {a.name.decode(): a for a in reader.arrays()}
        assert {
            n: (a.type, a.memory, a.access, a.item, a.rank, a.shape[0]) for n, a in by_name.items() if n in "xys"
        } == {
            "x": (b"f32", b"bound", b"r", 4, 1, -1),
            "y": (b"f32", b"bound", b"rw", 4, 1, -1),
            "s": (b"f32", b"bound", b"rw", 4, 1, by_name["s"].shape[0]),
        }
        (constant,) = (a for a in by_name.values() if a.memory == b"constant")
        assert constant.shape[0] == 8
        assert constant.pointer
        reader.bind("x", arguments()["x"].ctypes.data, N)
        assert reader.arrays()[list(by_name).index("x")].shape[0] == N


def test_bad_bindings_are_named(saved):
    a = arguments()
    with Reader(saved, HERE) as reader:
        with pytest.raises(ValueError, match=r"array [xys] is not bound"):
            reader.run()
        with pytest.raises(ValueError, match="no array z that can be bound"):
            reader.bind("z", 64, 1)
        with pytest.raises(ValueError, match="array x has 1 axes, not 2"):
            reader.bind("x", 64, 3, 4)
        with pytest.raises(ValueError, match="array x is bound to NULL"):
            reader.bind("x", 0, 3)
        with pytest.raises(ValueError, match=r"axis 0 of array x cannot have -3 elements"):
            reader.bind("x", 64, -3)
        with pytest.raises(ValueError, match="more than"):
            reader.bind("x", 64, 1 << 40)
        reader.run(**a)
        reader.bind("x", a["x"].ctypes.data + 1, N - 1)
        with pytest.raises(ValueError, match="array x must begin at a multiple of 4 bytes"):
            reader.run()
        reader.bind("x", a["y"].ctypes.data + 400, 10)
        with pytest.raises(ValueError, match="arrays x and y overlap"):
            reader.run()
        reader.bind("x", a["x"].ctypes.data, N)
        reader.bind("y", a["y"].ctypes.data, N - 1)
        with pytest.raises(
            ValueError, match=r"kernel waves is certain to access index 999 of axis 0 of y.* 999 elements"
        ):
            reader.run()
        reader.run(**a)


BOTH = """
import numpy as np
from pathlib import Path
from c_reader import Reader
import quadpy as qp

file = Path(FILE).read_bytes()
Reader(OTHER, TARGET)  # opens what else it opens
with qp.graph.load(OTHER) as loaded:  # a process's first
    numbers = np.ones(4, np.float32)
    loaded.run(x=numbers)
    Reader(file, TARGET)
    loaded.run(x=numbers)
    assert numbers.tolist() == [4.0] * 4
"""


def test_python_and_c_load_code_in_one_process(saved, tmp_path):
    x, graph, other = qp.ndarray(qp.f32, 4), qp.graph.Graph(), tmp_path / "other.qpg"
    graph.add_kernel(doubled, x)
    graph.save(other, targets=[HERE], bind={"x": x})
    program = (
        f"import sys; sys.path[:] = {sys.path}\nOTHER, FILE, TARGET = {str(other)!r}, {str(saved)!r}, {HERE!r}{BOTH}"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=200)


def test_bad_files_are_errors(saved, tmp_path):
    whole = saved.read_bytes()
    with pytest.raises(ValueError, match=r"cannot be read: No such file"):
        Reader(tmp_path / "none.qpg")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        Reader(tmp_path)
    with pytest.raises(ValueError, match=r"has code for cpu:arm64, .*nothing runs here as arm7"):
        Reader(saved, "arm7")
    with pytest.raises(ValueError, match="nothing runs here as"):
        Reader(saved, "x86-64" if HERE == "arm64" else "arm64")
    assert all(refusal(whole[:size]) for size in range(0, len(whole), 997))
    for at in range(0, len(whole), 61):  # many bytes are padding, or of other targets
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        found = refusal(bytes(damaged))
        assert not found or "damaged" in found or "saved graph" in found
    with pytest.raises(ValueError, match=r"manifest.json is compressed"):
        Reader(zipped({"manifest.json": b" " * 999}, 8), HERE)
    with pytest.raises(ValueError, match=r"it has no manifest.json"):
        Reader(zipped({"other": b"{}"}), HERE)


MISTAKES = {
    "has format 2, this reader knows 1": lambda m: m.update(format=2),
    "'arrays' is missing": lambda m: m.pop("arrays"),
    "nested too deeply": lambda m: b"[" * 100_000,
    "a value is missing": lambda m: b"",
    "at byte 3": lambda m: b"[1,",
    "more than 64 bits": lambda m: b"[99999999999999999999999]",
    "a number is not an integer": lambda m: b"[1.5]",
    "a text has no end": lambda m: b'["x',
    "unknown escape": lambda m: b'["\\x"]',
    "something follows it": lambda m: b"{} {}",
    "unknown kind of work": lambda m: m["works"][0].update(kind="host"),
    "an array's number is not a number": lambda m: m["works"][1]["arguments"][1].__setitem__(1, 99),
    "has other arguments": lambda m: m["works"][1]["arguments"].pop(),
    "lies outside": lambda m: m["kernels"][0]["layout"]["values"][1].__setitem__(4, 1 << 19),
    "condition that this reader does not know": lambda m: m["guards"].append({"kind": "other"}),
    "unknown kind of memory": lambda m: m["arrays"][0].update(memory="shared"),
    "has more than 32 axes": lambda m: m["arrays"][0].update(shape=[1] * 33),
    "the data of array": lambda m: next(a for a in m["arrays"] if a["data"]).update(shape=[9]),
    "a kernel alone": lambda m: m.update(parameters=[]),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_in_manifests_are_named(saved, message):
    with pytest.raises(ValueError, match=message):
        Reader(changed(saved, MISTAKES[message]), HERE)


def test_formulas(saved):
    """Copies whose sizes are formulas: the reader computes what Python's evaluator does."""
    rng = np.random.default_rng(3)
    names = ["add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "product", "count", "wrap"]

    def formula(depth: int):
        if depth == 0 or rng.random() < 0.2:
            return [["value", 0], int(rng.integers(-40, 40)), int(rng.integers(-(2**33), 2**33))][rng.integers(3)]
        name = names[rng.integers(len(names))]
        count = {"wrap": 1, "count": 3, "product": int(rng.integers(0, 4))}.get(name, 2)
        bits = int(rng.choice([0, 8, 16, 32, 64]))
        return [name, bits, bool(rng.integers(2)), *(formula(depth - 1) for _ in range(count))]

    tried = 0
    for _ in range(150):
        what = formula(3)
        try:
            expected = compile_formula(formula_from_json(what))([N])
        except OverflowError:
            continue
        if abs(expected) >= 1 << 63:
            continue
        shifted = ["mod", 0, True, what, 16]

        def change(m, shifted=shifted):
            m["kernels"], m["sizes"] = [], [[0, 0]]
            m["works"] = [
                {
                    "kind": "fill",
                    "target": [1, 0],
                    "value": 0x41,
                    "element": 1,
                    "width": shifted,
                    "height": 1,
                    "pitch": 0,
                }
            ]
            m["kernels"] = m["kernels"] or []

        a = arguments()
        a["y"][:] = 0
        if message := refusal(changed(saved, change), **a):
            assert "too large" in message
            continue
        assert bytes(a["y"]).count(b"A") == expected % 16, what
        tried += 1
    assert tried > 60


GPU = """
import ctypes, sys
sys.path[:0] = {path!r}
from c_reader import Reader
fake = ctypes.CDLL({fake!r})
fake.test_log.restype = ctypes.c_char_p
def log():
    found = fake.test_log().decode()
    return found
reader = Reader(open({file!r}, "rb").read(), {target!r})
print("target", reader.target())
{body}
print(log())
reader.close()
"""


@pytest.fixture(scope="module")
def fakes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fakes")
    for name, source in (("libamdhip64.so.7", "hip_library.c"), ("libcuda.so.1", "cuda_library.c")):
        source = Path(c_reader.__file__).with_name(source)
        subprocess.run([*compiler(), "-shared", "-fPIC", "-w", "-o", folder / name, source], check=True, timeout=200)
    return folder


def on_gpu(fakes: Path, file: Path, target: str | None, body: str, library: str = "libamdhip64.so.7") -> str:
    path = [str(Path(c_reader.__file__).parent), str(Path(qp.__path__[0]).parent)]
    code = GPU.format(path=path, fake=library, file=str(file), target=target, body=textwrap.dedent(body))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"LD_LIBRARY_PATH": str(fakes)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


BIND = """
for name, at, n in (("x", 0x10000, 1000), ("y", 0x20000, 1000), ("s", 0x30000, 1)):
    reader.bind(name, at, n)
"""


@pytest.mark.parametrize(
    ("target", "library", "prefix"), [("gfx942", "libamdhip64.so.7", "hipModule"), ("sm_80", "libcuda.so.1", "cu")]
)
def test_what_a_gpu_is_asked_for(fakes, saved, target, library, prefix, tmp_path):
    # a fill would write to an address that is none here
    file = tmp_path / "no-fill.qpg"
    file.write_bytes(changed(saved, lambda m: m["works"].__setitem__(0, {"kind": "empty"}) or m.update(fused=None)))
    out = on_gpu(fakes, file, target, BIND + "reader.run(0x77)", library)
    assert f"target {target}" in out
    launches = [line.split() for line in out.splitlines() if line.startswith(f"{prefix}LaunchKernel")]
    waves_block = struct.pack("<fxxxxQixxxxQi", 2.0, 0x10000, N, 0x20000, N)  # CUDA refuses padding at the end
    assert launches[0][-1] == f"[{waves_block.hex()}]"
    grid, block = [
        " ".join(part.split()) for part in " ".join(launches[0]).replace("<", "|").replace(">", "|").split("|")[1:4:2]
    ]
    threads = int(block.split()[0])
    assert grid == f"{-(-N // threads)} 1 1"
    assert " 77 " in " ".join(launches[0])
    assert len(launches) >= 3
    if target == "sm_80":
        assert out.index("cuDevicePrimaryCtxRetain") < out.index("cuModuleLoadData")
        assert ".target sm_80" in out


def test_what_runs_again_is_a_graph_of_cudas(fakes, saved, tmp_path):
    """From the second run with the same arrays on; on HIP, whose graphs launch their nodes one by one, there is none."""
    file = tmp_path / "no-fill.qpg"
    file.write_bytes(changed(saved, lambda m: m["works"].__setitem__(0, {"kind": "empty"})))

    def calls(target, library, body):
        lines = on_gpu(fakes, file, target, body, library).splitlines()
        called = [line.split()[0] for line in lines if line.startswith(("cu", "hip"))]
        return [name for name in called if not name.endswith(("GetAttribute", "IsCapturing"))]

    once = calls("sm_80", "libcuda.so.1", BIND + "reader.run()")
    work = once[once.index("cuLaunchKernel") :]
    begin, end = ["cuStreamBeginCapture_v2"], ["cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphDestroy"]
    body = f"{BIND}for _ in range(4): reader.run()\n{BIND}for _ in range(2): reader.run()"
    often = calls("sm_80", "libcuda.so.1", body)
    first = [*work, "cuStreamCreate", *begin, *work, *end, *["cuGraphLaunch"] * 3]
    assert often[often.index("cuLaunchKernel") :] == [
        *first, "cuGraphExecDestroy", *work, *begin, *work, *end, "cuGraphLaunch",
    ]  # fmt: skip
    assert len(work) >= 3
    captured = calls("sm_80", "libcuda.so.1", f"{body}\nfake.test_capturing(1)\nreader.run(0x77)")
    assert captured[len(often) :] == work  # in the user's capture, which takes no launch of a graph
    for refused in begin[0], end[1]:
        often = calls("sm_80", "libcuda.so.1", f'fake.test_fail(b"{refused}", 801)\n{body}')
        assert "cuGraphLaunch" not in often
        assert often.count("cuLaunchKernel") == work.count("cuLaunchKernel") * (6 if refused == begin[0] else 8)
    assert not [each for each in calls("gfx942", "libamdhip64.so.7", body) if "Graph" in each or "Capture_" in each]


def test_the_best_target_is_chosen(fakes, saved):
    assert "target gfx942" in on_gpu(fakes, saved, None, "pass")
    assert f"target cpu:{HERE}" in on_gpu(fakes, saved, "cpu", "pass")


def test_other_devices_are_refused(saved, fakes, tmp_path):
    file = tmp_path / "other.qpg"

    def rename(m):
        for kernel in m["kernels"]:
            kernel["code"]["gfx1100"] = kernel["code"].pop("gfx942")
        m["targets"][m["targets"].index("gfx942")] = "gfx1100"

    file.write_bytes(changed(saved, rename))
    with pytest.raises(AssertionError, match="nothing runs here as gfx1100; the machine's GPUs: gfx942"):
        on_gpu(fakes, file, "gfx1100", "pass")


def test_a_graph_without_kernels_runs_on_each_target(fakes, tmp_path):
    x, file = qp.ndarray(qp.f32, 4), tmp_path / "fill.qpg"
    graph = qp.graph.Graph()
    graph.add_memset(x, 1.5)
    graph.save(file, targets=[HERE, "gfx942"], bind={"x": x})
    for target in (HERE, "cpu"):
        numbers = np.zeros(3, np.float32)
        with Reader(file, target) as reader:
            reader.run(x=numbers)
        assert numbers.tolist() == [1.5] * 3
    for asked in (None, "gfx942"):
        assert "target gfx942" in on_gpu(fakes, file, asked, "pass")
    with pytest.raises(ValueError, match=f"has code for cpu:{HERE}, gfx942"):
        Reader(file, "gfx1100")


def test_structs_of_the_host_may_begin_anywhere(tmp_path):
    body = qp.types.struct(a64=qp.i8, b=qp.i8)
    x, file = body.ndarray(4), tmp_path / "bodies.qpg"
    graph = qp.graph.Graph()
    graph.add_memset(x, 7, element=1)
    graph.save(file, targets=[HERE], bind={"x": x})
    numbers = np.zeros(9, np.int8)
    with Reader(file, "cpu") as reader:
        reader.bind("x", numbers.ctypes.data + 1, 4)
        reader.run()
    assert numbers.tolist() == [0] + [7] * 8


def test_an_array_without_axes_needs_no_shape(tmp_path):
    """``bind`` passes NULL; the sanitizers see what the reader does with it."""
    x, source = qp.ndarray(qp.f32, ()), tmp_path / "main.c"
    graph = qp.graph.Graph()
    graph.add_memset(x, 1.5)
    graph.save(tmp_path / "one.qpg", targets=[HERE], bind={"x": x})
    source.write_text("""
        #include "quadpy_graph.c"
        int main(int argc, char **argv) {
          float x = 0;
          qpg_graph *graph = argc > 1 ? qpg_open(argv[1], "cpu", NULL, 0) : NULL;
          int failed = !graph || qpg_bind(graph, "x", &x, NULL, 0) || qpg_run(graph, NULL) || x != 1.5f;
          qpg_close(graph);
          return failed;
        }""")
    command = [*compiler(), *SANITIZED, source, "-o", tmp_path / "main", "-ldl", "-lm", "-lpthread"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("the compiler has no sanitizers")
    done = subprocess.run([tmp_path / "main", tmp_path / "one.qpg"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


MOVES = [
    {"kind": "copy", "target": [1, 4], "source": [1, 16], "bytes": ["mul", 0, True, 4, 2]},
    {"kind": "fill", "target": [1, 0], "value": 0xABCD, "element": 2, "width": 2, "height": 2, "pitch": 8},
]


def test_loops_forks_fills_and_copies(fakes, saved, tmp_path):
    def change(m):
        for kernel in m["kernels"]:
            code = kernel["code"]["gfx942"]
            if kernel["name"] == "total":
                kernel["conditions"] = [["s", 4]]
                code["flow"] = [{"fork": [[0], [0]]}, {"loop": "s", "body": [0]}]
        m["fused"] = None
        m["works"][0] |= {"value": 5, "element": 4, "width": 1, "height": 1}
        m["works"] += MOVES

    file = tmp_path / "flow.qpg"
    file.write_bytes(changed(saved, change))
    out = on_gpu(fakes, file, "gfx942", """
        arrays = {n: (ctypes.c_char * 4096)() for n in "xys"}
        at = {n: (ctypes.addressof(a) + 63) // 64 * 64 for n, a in arrays.items()}
        for name, count in (("x", 16), ("y", 16), ("s", 1)):
            reader.bind(name, at[name], count)
        fake.test_count(ctypes.c_void_p(at["s"]))
        reader.run()
        print("y", ctypes.string_at(at["y"], 16).hex())
    """)  # fmt: skip
    # waves, weighted, twice in the fork, and in the loop until the 5 are counted down
    assert out.count("hipModuleLaunchKernel") == 5
    assert out.count("hipMemcpyDtoHAsync") == 1
    assert out.count("hipMemcpyDtoDAsync") == 1
    assert out.count("hipMemsetD16Async") == 2
    assert "y cdabcdab00000000cdabcdab" in out


def expected_block(manifest, arrays):
    """The arguments of the one launch and their block, with arrays at such addresses and of such extents."""
    layout, values = manifest["fused"]["kernel"]["layout"]["values"], []
    sizes = [arrays[manifest["arrays"][array]["name"]][1] for array, _ in manifest["sizes"]]
    for kind, *rest in manifest["fused"]["arguments"]:
        name = manifest["arrays"][rest[0]]["name"] if kind in ("pointer", "extent") else ""
        match kind:
            case "pointer":
                values.append(arrays[name][0] + rest[1])
            case "extent":
                values.append(arrays[name][1])
            case "size":
                values.append(compile_formula(formula_from_json(rest[0]))(sizes))
            case _:
                values.append(rest[0])
    codes = "".join({"f": "I"}.get(value[3], value[3]) for value in layout)  # floats are their bits
    return values, struct.pack("@" + codes, *values).ljust(manifest["fused"]["kernel"]["layout"]["size"], b"\0")


@pytest.fixture
def moves(tmp_path):
    """A graph of kernels, copies and fills, and its manifest."""
    qp.init(arch=qp.cpu)
    graph, bind = moving(6)
    path = tmp_path / "moves.qpg"

    def made(**options):
        graph.save(path, bind=bind, targets=["gfx942", "sm_90"], **options)
        return path, json.loads(unpacked(path.read_bytes())[MANIFEST])

    yield made
    qp.reset()


BIND_MOVES = """
sizes = {n: (16 * k << 8, COUNT if n != "s" else 1) for k, n in enumerate(("x", "y", "z", "flags", "s"), 1)}
arrays = {n: (ctypes.c_char * (4 * count + 512))() for n, (_, count) in sizes.items()}
at = {n: (ctypes.addressof(a) + 255) // 256 * 256 for n, a in arrays.items()}
for name, (_, count) in sizes.items():
    reader.bind(name, at[name], count)
fake.test_together(BYTES)
print("at", {n: (at[n], sizes[n][1]) for n in sizes})
"""


@pytest.mark.parametrize(
    ("target", "library", "always", "name"),
    [
        ("gfx942", "libamdhip64.so.7", False, "hipModuleLaunchCooperativeKernel"),
        ("sm_90", "libcuda.so.1", True, "cuLaunchCooperativeKernel"),
    ],
)
def test_all_works_are_one_launch(fakes, moves, target, library, always, name):
    path, manifest = moves(fuse=True if always else "auto")
    size = manifest["fused"]["kernel"]["layout"]["size"]
    for count in (1000, 7):
        body = (
            BIND_MOVES.replace("COUNT", str(count)).replace("BYTES", str(size)) + "reader.run(0x77)\nreader.run(0x77)"
        )
        out = on_gpu(fakes, path, target, body, library)
        arrays = ast.literal_eval(next(line[3:] for line in out.splitlines() if line.startswith("at ")))
        launches = [line for line in out.splitlines() if line.startswith(name)]
        assert len(launches) == 2
        assert "LaunchKernel" not in out
        values, block = expected_block(manifest, arrays)
        assert all(f"[{block.hex()}]" in line and " 77 " in line for line in launches)
        extent = manifest["fused"]["kernel"]["code"][target]["tasks"][0]["extent"]
        blocks = -(-compile_formula(formula_from_json(extent))(values) // 256)
        assert 0 < blocks < 2 * 132
        assert f"<{blocks} 1 1> <256 1 1>" in launches[0]
        marks = re.findall(r"hipMemsetD8Async memory\+\w+ 0 8 77", out)
        assert len(marks) == (2 if target == "gfx942" else 0)


def test_what_is_not_one_launch(fakes, moves):
    """Many iterations, a refusal, a capture on HIP, and a graph that meets too often for NVIDIA's costs run separately."""
    path, _ = moves()
    small = BIND_MOVES.replace("COUNT", "1000").replace("BYTES", "4")
    run = small + "reader.run(0x77)"
    separate = {
        "large": (
            "gfx942",
            BIND_MOVES.replace("COUNT", str(16 * 2 * 304 * 256 + 1)).replace("BYTES", "4") + "reader.run()",
        ),
        "capture": ("gfx942", small + "fake.test_capturing(1)\nreader.run(0x77)"),
        "nvidia": ("sm_90", run),
    }
    for name, (target, body) in separate.items():
        out = on_gpu(fakes, path, target, body, "libcuda.so.1" if target == "sm_90" else "libamdhip64.so.7")
        assert "Cooperative" not in out, name
        assert out.count("LaunchKernel") == 5, name  # count has two loops, total a merge
    refused = small + 'fake.test_fail(b"hipModuleLaunchCooperativeKernel", 720)\nreader.run(0x77)\nreader.run(0x77)'
    out = on_gpu(fakes, path, "gfx942", refused)
    assert (out.count("Cooperative"), out.count("hipModuleLaunchKernel")) == (1, 10)
    with pytest.raises(AssertionError, match=r"HIP: .* failed with status 700"):
        on_gpu(
            fakes, path, "gfx942", small + 'fake.test_fail(b"hipModuleLaunchCooperativeKernel", 700)\nreader.run(0x77)'
        )
    path, manifest = moves(fuse=False)
    assert manifest["fused"] is None
    assert "Cooperative" not in on_gpu(fakes, path, "gfx942", run)


@pytest.mark.parametrize("fuse", ["auto", False])
def test_loops_are_inside_a_launch(fakes, tmp_path, fuse):
    """Also where the other works are launches of their own; the host waits for nothing."""
    path, (graph, bind, memory) = tmp_path / "loops.qpg", loops()
    graph.save(path, bind=bind, targets=["gfx942", "sm_90"], fuse=fuse, **memory)
    for target, library in (("gfx942", "libamdhip64.so.7"), ("sm_90", "libcuda.so.1")):
        out = on_gpu(fakes, path, target, """
            for k, name in enumerate(("n", "turns")):
                reader.bind(name, 0x10000 * (k + 1), 3)
            print("run")
            reader.run(0x77)
        """, library)  # fmt: skip
        assert out.count("CooperativeKernel") == 1
        assert "LaunchKernel" not in out
        assert "DtoHAsync" not in out
        assert out.count(" 0 4 77") == (fuse is False)  # the fill
    captured = 'reader.bind("n", 64, 3)\nreader.bind("turns", 4096, 3)\nfake.test_capturing(1)\nreader.run(0x77)'
    with pytest.raises(AssertionError, match="collatz has a loop for which the host waits, and the stream is captured"):
        on_gpu(fakes, path, "gfx942", captured)
    assert "CooperativeKernel" in on_gpu(fakes, path, "sm_90", captured, "libcuda.so.1")


@pytest.mark.parametrize("language", [["-std=c11"], ["-x", "c++", "-std=c++17"]])
@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_the_sources_compile_without_warnings(name, language, tmp_path):
    if not shutil.which(name):
        pytest.skip(f"no {name}")
    more = ["-Wshadow", "-Wconversion"] if name == "gcc" else []  # clang's also ask for casts between signs
    command = [name, *STRICT[1:], *more, *language, "-c", FOLDER / "quadpy_graph.c", "-o", tmp_path / "a.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


SANITIZED = ["-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{FOLDER}"]


def test_no_mutated_file_crashes_the_reader(saved, tmp_path):
    """Nor did a million, with four seeds."""
    program, source = tmp_path / "fuzz", Path(c_reader.__file__).with_name("fuzz_reader.c")
    if subprocess.run([*compiler(), *SANITIZED, source, "-o", program], capture_output=True, check=False).returncode:
        pytest.skip("the compiler has no sanitizers")

    def shorten(m):
        for kernel in m["kernels"]:
            gpu, cpu = kernel["code"]["gfx942"], kernel["code"][f"cpu:{HERE}"] | {"entry": "qpg_0"}
            gpu["image"] = cpu["image"] = "code/0"
            kernel["code"] = {"gfx942": gpu, f"cpu:{HERE}": cpu}
            if kernel["name"] == "total":
                kernel["conditions"] = [["s", 4]]
                gpu["flow"] = [{"fork": [[0], [0]]}, {"loop": "s", "body": [0]}]
            if kernel["name"] != "waves":
                gpu["one"] = gpu | {"flow": None, "tasks": [gpu["tasks"][0] | {"cooperative": True}]}
        m["works"] += MOVES
        code = m["fused"]["kernel"]["code"]
        m["fused"]["kernel"]["code"] = {"gfx942": code["gfx942"] | {"image": "code/0"}}

    small = tmp_path / "small.qpg"
    small.write_bytes(changed(saved, shorten, {"code/0": b"text"}))
    done = subprocess.run(
        [program, small, "20000", "1"], capture_output=True, text=True, check=False, timeout=400,
        env=os.environ | {"ASAN_OPTIONS": "allocator_may_return_null=1"},  # for arrays that claim to be large
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 100
