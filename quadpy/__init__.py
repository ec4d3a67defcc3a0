"""quadpy: a kernel language in Python for AMD GPUs, NVIDIA GPUs and the CPU.

>>> import quadpy as qp
>>> qp.init(arch=qp.cpu)
"""

# ruff: noqa: F403 - all errors, builtins and aliases are public, and named in one place
from __future__ import annotations

import sys as _sys
import typing as _typing

from quadpy import aliases as _aliases, errors as _errors, graph, math, simt, types
from quadpy._version import __version__
from quadpy.aliases import *
from quadpy.api import (
    amdgpu,
    cpu,
    cuda,
    follow_environment as _follow_environment,
    gpu,
    init,
    on_reset,
    python,
    reset,
    sync,
)
from quadpy.core.dtypes import bf16, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64
from quadpy.core.importing import import_late as _import_late
from quadpy.core.messages import no_attribute as _no_attribute
from quadpy.core.other_project import warn_of_other_project as _warn_of_other_project
from quadpy.errors import *
from quadpy.hostmath import Matrix, Struct, Vector, dataclass
from quadpy.intrinsics import top as _top
from quadpy.intrinsics.top import *
from quadpy.jit.decorators import kernel
from quadpy.jit.kernel import Kernel
from quadpy.lang.decorators import Template, data_oriented, func, pyfunc, real_func, ref, template
from quadpy.math.linalg import cholesky, eig, make_spd, polar_decompose, qr, solve, svd, sym_eig
from quadpy.runtime.arrays.field import Field, field
from quadpy.runtime.arrays.field_layout import Layout
from quadpy.runtime.arrays.ndarray import NDArray, from_dlpack, ndarray
from quadpy.runtime.arrays.tensor import Backend, tensor
from quadpy.runtime.arrays.tree import (
    FieldsBuilder,
    axes,
    deactivate_all_snodes,
    i,
    ij,
    ijk,
    ijkl,
    ijl,
    ik,
    ikl,
    il,
    j,
    jk,
    jkl,
    jl,
    k,
    kl,
    l,
    root,
)
from quadpy.runtime.device.devices import create_event, create_stream, memory_stats
from quadpy.runtime.streams.event import Event
from quadpy.runtime.streams.stream import Stream, use_stream
from quadpy.types import Array, Array0D, Array1D, Array2D, Array3D, Array4D

__version_str__ = __version__

__all__ = [
    "Array",
    "Array0D",
    "Array1D",
    "Array2D",
    "Array3D",
    "Array4D",
    "Backend",
    "BitpackedFields",
    "BufferView",
    "Event",
    "Field",
    "FieldsBuilder",
    "GraphStatus",
    "Kernel",
    "Layout",
    "Matrix",
    "MatrixTensor",
    "NDArray",
    "PerfDispatch",
    "SavedKernel",
    "Stream",
    "Struct",
    "Template",
    "Tensor",
    "Vector",
    "VectorTensor",
    "__version__",
    "__version_str__",
    "ad",
    "algorithms",
    "amdgpu",
    "axes",
    "bf16",
    "clock_freq_hz",
    "cpu",
    "cholesky",
    "create_event",
    "create_stream",
    "cuda",
    "data_oriented",
    "dataclass",
    "deactivate_all_snodes",
    "dist",
    "eig",
    "f16",
    "f32",
    "f64",
    "field",
    "from_dlpack",
    "func",
    "get_max_shared_memory_bytes",
    "gpu",
    "graph",
    "hazards",
    "i",
    "i16",
    "i32",
    "i64",
    "i8",
    "ij",
    "ijk",
    "ijkl",
    "ijl",
    "ik",
    "ikl",
    "il",
    "init",
    "is_arch_supported",
    "j",
    "jk",
    "jkl",
    "jl",
    "k",
    "kernel",
    "kl",
    "l",
    "linalg",
    "make_spd",
    "math",
    "load_kernel",
    "memory_stats",
    "ndarray",
    "on_reset",
    "outer",
    "perf_dispatch",
    "polar_decompose",
    "profile",
    "profiler",
    "pyfunc",
    "python",
    "qr",
    "real_func",
    "ref",
    "reset",
    "root",
    "simt",
    "solve",
    "svd",
    "sym_eig",
    "sync",
    "template",
    "tensor",
    "tools",
    "torch",
    "types",
    "u1",
    "u16",
    "u32",
    "u64",
    "u8",
    "use_stream",
    "view",
    "wrap",
]
__all__ += _aliases.__all__
__all__ += _errors.__all__
__all__ += _top.__all__

_warn_of_other_project(_sys.modules[__name__].__path__[0])

_follow_environment()

if _typing.TYPE_CHECKING:
    from quadpy import (
        ad as ad,
        algorithms as algorithms,
        dist as dist,
        hazards as hazards,
        linalg as linalg,
        profiler as profiler,
        tools as tools,
        torch as torch,
        view as view,
    )
    from quadpy.capabilities import (
        get_max_shared_memory_bytes as get_max_shared_memory_bytes,
        is_arch_supported as is_arch_supported,
    )
    from quadpy.clock import clock_freq_hz as clock_freq_hz
    from quadpy.graph.saved.kernel import SavedKernel as SavedKernel, load_kernel as load_kernel
    from quadpy.jit.checkpoints import GraphStatus as GraphStatus
    from quadpy.jit.perf_dispatch import PerfDispatch as PerfDispatch, perf_dispatch as perf_dispatch
    from quadpy.lang.tensors import (
        MatrixTensor as MatrixTensor,
        Tensor as Tensor,
        VectorTensor as VectorTensor,
        wrap as wrap,
    )
    from quadpy.profiler import profile as profile
    from quadpy.runtime.arrays.buffer_view import BufferView as BufferView
    from quadpy.runtime.arrays.quantised import BitpackedFields as BitpackedFields
    from quadpy.simt.square import outer as outer

_LATE: _typing.Final = {
    "clock": "clock_freq_hz",
    "capabilities": "get_max_shared_memory_bytes is_arch_supported",
    "graph.saved.kernel": "SavedKernel load_kernel",
    "jit.checkpoints": "GraphStatus",
    "jit.perf_dispatch": "PerfDispatch perf_dispatch",
    "lang.tensors": "MatrixTensor Tensor VectorTensor wrap",
    "profiler": "profile",
    "runtime.arrays.buffer_view": "BufferView",
    "runtime.arrays.quantised": "BitpackedFields",
    "simt.square": "outer",
}
"""Names that most programs do without, by the module that has them."""


def __getattr__(name: str) -> object:
    if name in (
        "ad",
        "algorithms",
        "dist",
        "hazards",
        "linalg",
        "profiler",
        "tools",
        "torch",
        "view",
    ):  # most programs do without
        return _import_late(f"quadpy.{name}")
    home = next((module for module, names in _LATE.items() if name in names.split()), None)
    if home is not None:
        return getattr(_import_late(f"quadpy.{home}"), name)
    raise _no_attribute("module 'quadpy'", name, __all__, _import_late("quadpy.core.elsewhere").INSTEAD)


def __dir__() -> list[str]:
    return __all__
