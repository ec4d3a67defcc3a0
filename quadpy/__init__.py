"""quadpy: a kernel language in Python for AMD GPUs, NVIDIA GPUs and the CPU.

>>> import quadpy as qp
>>> qp.init(arch=qp.cpu)
"""

from __future__ import annotations

from quadpy import math, types
from quadpy._version import __version__
from quadpy.api import amdgpu, cpu, cuda, gpu, init, reset, sync
from quadpy.dtypes import bf16, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64
from quadpy.errors import *  # noqa: F403  (the exception tree is public as a whole)
from quadpy.errors import __all__ as _errors
from quadpy.hostmath import Matrix, Vector
from quadpy.jit.kernel import Kernel, kernel
from quadpy.lang.builtins import BUILTINS as _BUILTINS
from quadpy.lang.decorators import func, template
from quadpy.runtime.field import Field, Layout, field
from quadpy.runtime.ndarray import NDArray, from_dlpack, ndarray
from quadpy.runtime.tree import axes, i, ij, ijk, ijkl, ijl, ik, ikl, il, j, jk, jkl, jl, k, kl, l, root

__all__ = [
    "Field", "Kernel", "Layout", "Matrix", "NDArray", "Vector", "__version__", "amdgpu", "axes", "bf16", "cpu", "cuda",
    "f16", "f32", "f64", "field", "from_dlpack", "func", "gpu", "i", "i16", "i32", "i64", "i8", "ij", "ijk", "ijkl",
    "ijl", "ik", "ikl", "il", "init", "j", "jk", "jkl", "jl", "k", "kernel", "kl", "l", "math", "ndarray", "reset",
    "root", "sync", "template", "types", "u1", "u16", "u32", "u64", "u8",
]  # fmt: skip
globals().update(_BUILTINS)
__all__ += [*_BUILTINS]
__all__ += _errors
