"""The names that programs written for Taichi and Quadrants use: what quadpy has of them, and what it leaves out."""

from __future__ import annotations

import importlib
import logging

import numpy as np
import pytest

import quadpy as qp

NAMES = {
    "start": """
        init cpu x64 x86_64 arm64 cuda amdgpu gpu reset sync cfg is_extension_enabled extension dump_compile_config
        is_arch_supported get_max_shared_memory_bytes on_reset __version__ __version_str__ set_logging_level is_logging_effective TRACE DEBUG INFO WARN ERROR CRITICAL
    """,
    "decorators": "kernel func real_func pyfunc data_oriented dataclass perf_dispatch",
    "types": """
        f16 f32 f64 i8 i16 i32 i64 u1 u8 u16 u32 u64 float16 float32 float64 int8 int16 int32 int64 uint1 uint8 uint16
        uint32 uint64 types.is_signed types.is_integral types.is_real types.is_tensor
    """,
    "annotations": """
        template Template types.ndarray types.NDArray Tensor types.vector types.matrix types.struct Layout Layout.AOS
        Layout.SOA VectorTensor MatrixTensor BufferView types.BufferViewType types.f32 types.i64
    """,
    "containers": """
        field ndarray Vector.field Vector.ndarray Matrix.field Matrix.ndarray Struct.field Field root axes i j k l ij ik
        il jk jl kl ijk ijl ikl jkl ijkl wrap
    """,
    "statements": """
        static static_assert static_print grouped ndrange loop_config zero one stream_parallel graph.parallel
        graph.parallel_context graph.do_while global_thread_idx ifte
    """,
    "operators": "raw_div raw_mod bit_shr cast bit_cast select floor ceil round",
    "math": """
        sin cos tan asin acos atan2 tanh exp log sqrt rsqrt pow abs floor ceil round min max select random randn
        math.pi math.e math.inf math.nan math.vec2 math.vec3 math.vec4 math.ivec2 math.ivec3 math.ivec4 math.uvec2
        math.uvec3 math.uvec4 math.mat2 math.mat3 math.mat4 math.mix math.clamp math.step math.fract math.smoothstep
        math.sign math.normalize math.length math.distance math.dot math.cross math.reflect math.refract math.mod
        math.degrees math.radians math.log2 math.eye math.inverse math.determinant math.isinf math.isnan math.vdir
        math.translate math.scale math.rot_by_axis math.rot_yaw_pitch_roll math.rotation2d math.rotation3d math.popcnt
        math.clz math.ffs math.fns math.cmul math.cconj math.cdiv math.csqrt math.cinv math.cpow math.cexp math.clog
    """,
    "vectors": """
        Vector Matrix Vector.zero Vector.one Vector.unit Matrix.zero Matrix.one Matrix.identity Matrix.unit Matrix.diag
        Matrix.rows Matrix.cols
    """,
    "atomics": "atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor atomic_mul",
    "linear algebra": "svd sym_eig make_spd polar_decompose eig solve cholesky qr",
    "streams": "create_stream create_event Stream Event",
    "errors": """
        QuadrantsCompilationError QuadrantsSyntaxError QuadrantsNameError QuadrantsIndexError QuadrantsTypeError
        QuadrantsRuntimeError QuadrantsAssertionError QuadrantsRuntimeTypeError
    """,
}


def found(path: str) -> object:
    value: object = qp
    for name in path.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("path", [path for names in NAMES.values() for path in names.split()])
def test_the_name_is_there_and_public(path):
    assert found(path) is not None
    if "." not in path:
        assert path in qp.__all__


def test_methods_of_vectors_and_matrices():
    v, m = qp.Vector([1.0, 2.0, 2.0]), qp.Matrix([[2.0, 0.0], [0.0, 4.0]])
    for name in [
        "dot",
        "cross",
        "outer_product",
        "norm",
        "norm_sqr",
        "norm_inv",
        "normalized",
        "sum",
        "max",
        "min",
        "any",
        "all",
        "fill",
        "cast",
        "to_list",
        "to_numpy",
        "n",
        "m",
        "get_shape",
    ]:
        assert hasattr(v, name), name
    for name in [
        "transpose",
        "trace",
        "determinant",
        "inverse",
        "sum",
        "max",
        "min",
        "any",
        "all",
        "fill",
        "cast",
        "to_list",
        "to_numpy",
        "n",
        "m",
        "get_shape",
    ]:
        assert hasattr(m, name), name


def test_other_names_mean_the_same():
    assert qp.float32 is qp.f32
    assert qp.uint1 is qp.u1
    assert qp.QuadrantsTypeError is qp.KernelTypeError
    assert issubclass(qp.QuadrantsSyntaxError, (qp.QuadrantsCompilationError, SyntaxError))
    assert issubclass(qp.QuadrantsAssertionError, AssertionError)
    assert qp.__version_str__ == qp.__version__


def test_extensions():
    enabled = {each.name for each in qp.extension if qp.is_extension_enabled(each)}
    assert {"sparse", "quant", "data64", "assertion"} <= enabled
    assert not enabled & {"mesh", "extfunc"}
    with pytest.raises(qp.ArgumentError, match="'sparse' is not an extension"):
        qp.is_extension_enabled("sparse")


@pytest.fixture
def restored():
    level = logging.getLogger("quadpy").level
    yield
    logging.getLogger("quadpy").setLevel(level)
    qp.init()


def test_logging(restored):
    for level in (qp.DEBUG, qp.INFO, qp.WARN, qp.ERROR, qp.CRITICAL):
        qp.set_logging_level(level)
        assert qp.is_logging_effective(level)
    assert not qp.is_logging_effective(qp.INFO)
    qp.set_logging_level("off")
    assert not qp.is_logging_effective(qp.CRITICAL)
    with pytest.raises(qp.ArgumentError, match=r"'loud' is not a logging level"):
        qp.set_logging_level("loud")


def test_the_configuration(restored, capsys):
    qp.init(default_fp=qp.f64, random_seed=7)
    assert qp.cfg.default_fp is qp.f64
    assert qp.cfg.random_seed == 7
    qp.dump_compile_config()
    assert "default_fp = f64\n" in capsys.readouterr().out
    with pytest.raises(AttributeError):
        qp.cfg.nothing  # noqa: B018 - the access raises


def test_options_without_a_meaning_are_ignored_with_a_line(restored, caplog):
    options = importlib.import_module("quadpy.reference_options").WITHOUT_MEANING
    with caplog.at_level(logging.INFO, "quadpy"):
        qp.init(**dict.fromkeys(options, 1))
    (line,) = [record for record in caplog.records if "ignored" in record.message]
    assert line.levelno == logging.INFO
    assert "opt_level" in line.message
    caplog.clear()
    qp.init()
    assert not caplog.records


def test_options_with_a_meaning(restored, tmp_path):
    kernel_cache = importlib.import_module("quadpy.cache.process").kernel_cache
    before = kernel_cache()
    qp.init(offline_cache=False)
    assert not kernel_cache().enabled
    qp.init(offline_cache_file_path=str(tmp_path / "cache"), offline_cache_max_size_of_files=5 << 20)
    assert kernel_cache().path == tmp_path / "cache"
    assert kernel_cache().limit == 5 << 20

    @qp.kernel
    def one() -> qp.i32:
        return 1

    assert one() == 1
    assert kernel_cache().stats().entries
    qp.init()
    assert kernel_cache() is before
    qp.init(log_level="error", require_version=qp.__version__)
    assert not qp.is_logging_effective("warn")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"archs": qp.cpu}, "did you mean 'arch'"),
        ({"defualt_fp": qp.f32}, "qp.init has no option 'defualt_fp'(?s:.)*did you mean 'default_fp'"),
        ({"require_version": (9, 9, 9)}, "version 9.9.9 is required"),
        ({"log_level": "loud"}, "'loud' is not a logging level"),
        ({"offline_cache_max_size_of_files": 0}, "takes a number of bytes above 0"),
        ({"offline_cache_cleaning_policy": "oldest"}, "offline_cache_cleaning_policy='oldest'"),
        ({"default_gpu_block_dim": 2000}, "a number of threads from 1 to 1024, not 2000"),
        ({"unrolling_limit": "many"}, "unrolling_limit must be a number of iterations, or 0 for no limit, not 'many'"),
        ({"print_ir": 3}, "print_ir must be True or False, not 3"),
    ],
)
def test_wrong_options(restored, options, message):
    before = qp.cfg.default_ip
    with pytest.raises(qp.ArgumentError, match=message):
        qp.init(**options, default_ip=qp.i64)
    assert qp.cfg.default_ip is before


@qp.kernel
def stretch(x: qp.types.ndarray(dtype=qp.f32, ndim=1), by: qp.template()):
    for i in x:
        for _ in qp.static(range(5)):
            x[i] += by


@pytest.mark.parametrize(
    ("option", "first", "within"),
    [
        ("print_preprocessed_ir", "==== stretch, cpu: trace ====", "parallel %i"),
        ("print_ir", "==== stretch, cpu: ir ====", "task stretch_t0 parallel"),
        ("print_kernel_llvm_ir", "==== stretch, cpu: llvm ====", "define "),
        ("print_kernel_asm", "==== stretch, cpu: asm ====", "stretch_t0"),
    ],
)
def test_kernels_are_printed_when_they_are_compiled(restored, capsys, option, first, within):
    """Also where the code is in the cache."""
    x = np.zeros(3, np.float32)
    stretch(x, 1)
    for _ in range(2):
        qp.init(**{option: True})
        stretch(x, 1)
        stretch(x, 1)
        printed = capsys.readouterr().out
        assert printed.startswith(first)
        assert within in printed
        assert printed.count("====") == 2
    qp.init()
    stretch(x, 1)
    qp.init(print_ir=True)
    qp.reset()
    stretch(x, 2)
    assert capsys.readouterr().out == ""


def test_kernels_are_written_to_a_folder(restored, tmp_path, capsys):
    qp.init(print_ir=True, print_kernel_llvm_ir=True, debug_dump_path=tmp_path / "dumps")
    stretch(np.zeros(3, np.float32), 1)
    ir, llvm = sorted((tmp_path / "dumps").iterdir(), key=lambda file: file.suffix)
    assert ir.name.endswith("_stretch.ir")
    assert "task stretch_t0" in ir.read_text()
    assert "define " in llvm.read_text()
    assert capsys.readouterr().out == ""


def test_loops_that_are_unrolled_too_often_give_a_warning(restored):
    x = np.zeros(3, np.float32)
    qp.init(unrolling_limit=4)
    with pytest.warns(RuntimeWarning, match="this loop is unrolled 5 times, more than unrolling_limit=4"):
        stretch(x, 3)
    qp.init(unrolling_limit=5)
    stretch(x, 3)


def test_floats_may_be_refused_as_compile_time_values(restored):
    x = np.zeros(3, np.float32)
    qp.init(raise_on_templated_floats=True)
    stretch(x, 2)
    with pytest.raises(
        qp.ArgumentError, match=r"by is a template parameter, and raise_on_templated_floats does not allow .* 2\.5"
    ):
        stretch(x, 2.5)
    qp.init()
    stretch(x, 2.5)
    assert x[0] == 22.5


def test_blocks_of_gpus_have_the_size_that_init_says(restored):
    def block() -> int:
        return stretch.compile("gfx942", by=1).tasks[0].block_dim

    qp.init(default_gpu_block_dim=96)
    assert block() == 96
    qp.init()
    assert block() != 96


def test_options_of_the_cpu_and_the_cache(restored):
    kernel_cache = importlib.import_module("quadpy.cache.process").kernel_cache
    qp.init(make_cpu_multithreading_loop=False, cpu_max_num_threads=None)
    assert qp.cfg.cpu_max_num_threads == 1
    qp.init(offline_cache_cleaning_policy="never")
    assert kernel_cache().limit > 1 << 50
    qp.init(offline_cache_cleaning_policy="lru", offline_cache_max_size_of_files=5 << 20)
    assert kernel_cache().limit == 5 << 20


def test_what_the_backend_can_do(restored):
    assert qp.get_max_shared_memory_bytes() == 65536
    assert qp.is_arch_supported(qp.cpu)
    assert qp.is_arch_supported(qp.python)
    assert isinstance(qp.is_arch_supported(qp.cuda), bool)
    with pytest.raises(qp.ArgumentError, match="'vulcan' is not a backend"):
        qp.is_arch_supported("vulcan")


def test_hooks_of_reset(restored, monkeypatch):
    monkeypatch.setattr(importlib.import_module("quadpy.api"), "_HOOKS", [])
    seen = []
    qp.on_reset(lambda: seen.append((1, qp.cfg.debug)))
    qp.on_reset(lambda: seen.append((2, qp.cfg.debug)))
    qp.init(debug=True)
    qp.reset()
    assert seen == [(1, None), (2, None)]
    with pytest.raises(qp.ArgumentError, match="3 cannot be called"):
        qp.on_reset(3)
