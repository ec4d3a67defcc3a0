# Made from quadpy/__init__.py and quadpy/typed.pyi: pytest tests/packaging --update-golden
# fmt: off
from quadpy import ad as ad
from quadpy import algorithms as algorithms
from quadpy import dist as dist
from quadpy import graph as graph
from quadpy import hazards as hazards
from quadpy import linalg as linalg
from quadpy import math as math
from quadpy import profiler as profiler
from quadpy import simt as simt
from quadpy import tools as tools
from quadpy import torch as torch
from quadpy import types as types
from quadpy import view as view
from quadpy._version import __version__ as __version__
from quadpy.aliases import CRITICAL as CRITICAL
from quadpy.aliases import DEBUG as DEBUG
from quadpy.aliases import ERROR as ERROR
from quadpy.aliases import INFO as INFO
from quadpy.aliases import QuadrantsAssertionError as QuadrantsAssertionError
from quadpy.aliases import QuadrantsCompilationError as QuadrantsCompilationError
from quadpy.aliases import QuadrantsIndexError as QuadrantsIndexError
from quadpy.aliases import QuadrantsNameError as QuadrantsNameError
from quadpy.aliases import QuadrantsRuntimeError as QuadrantsRuntimeError
from quadpy.aliases import QuadrantsRuntimeTypeError as QuadrantsRuntimeTypeError
from quadpy.aliases import QuadrantsSyntaxError as QuadrantsSyntaxError
from quadpy.aliases import QuadrantsTypeError as QuadrantsTypeError
from quadpy.aliases import TRACE as TRACE
from quadpy.aliases import WARN as WARN
from quadpy.aliases import arm64 as arm64
from quadpy.aliases import bfloat16 as bfloat16
from quadpy.aliases import cfg as cfg
from quadpy.aliases import dump_compile_config as dump_compile_config
from quadpy.aliases import extension as extension
from quadpy.aliases import float16 as float16
from quadpy.aliases import float32 as float32
from quadpy.aliases import float64 as float64
from quadpy.aliases import int16 as int16
from quadpy.aliases import int32 as int32
from quadpy.aliases import int64 as int64
from quadpy.aliases import int8 as int8
from quadpy.aliases import is_extension_enabled as is_extension_enabled
from quadpy.aliases import is_logging_effective as is_logging_effective
from quadpy.aliases import set_logging_level as set_logging_level
from quadpy.aliases import uint1 as uint1
from quadpy.aliases import uint16 as uint16
from quadpy.aliases import uint32 as uint32
from quadpy.aliases import uint64 as uint64
from quadpy.aliases import uint8 as uint8
from quadpy.aliases import x64 as x64
from quadpy.aliases import x86_64 as x86_64
from quadpy.api import amdgpu as amdgpu
from quadpy.api import cpu as cpu
from quadpy.api import cuda as cuda
from quadpy.api import gpu as gpu
from quadpy.api import init as init
from quadpy.api import on_reset as on_reset
from quadpy.api import python as python
from quadpy.api import reset as reset
from quadpy.api import sync as sync
from quadpy.capabilities import get_max_shared_memory_bytes as get_max_shared_memory_bytes
from quadpy.capabilities import is_arch_supported as is_arch_supported
from quadpy.clock import clock_freq_hz as clock_freq_hz
from quadpy.errors import ArgumentError as ArgumentError
from quadpy.errors import BoundsError as BoundsError
from quadpy.errors import CacheError as CacheError
from quadpy.errors import CaptureError as CaptureError
from quadpy.errors import CheckpointError as CheckpointError
from quadpy.errors import CodegenError as CodegenError
from quadpy.errors import CompilationError as CompilationError
from quadpy.errors import DeviceError as DeviceError
from quadpy.errors import DistributedError as DistributedError
from quadpy.errors import DriverError as DriverError
from quadpy.errors import EventError as EventError
from quadpy.errors import GraphError as GraphError
from quadpy.errors import GraphUpdateError as GraphUpdateError
from quadpy.errors import HazardError as HazardError
from quadpy.errors import HazardWarning as HazardWarning
from quadpy.errors import KernelAssertionError as KernelAssertionError
from quadpy.errors import KernelDivergenceError as KernelDivergenceError
from quadpy.errors import KernelFault as KernelFault
from quadpy.errors import KernelIndexError as KernelIndexError
from quadpy.errors import KernelNameError as KernelNameError
from quadpy.errors import KernelOverflowError as KernelOverflowError
from quadpy.errors import KernelRaceError as KernelRaceError
from quadpy.errors import KernelRangeError as KernelRangeError
from quadpy.errors import KernelShiftError as KernelShiftError
from quadpy.errors import KernelSourceError as KernelSourceError
from quadpy.errors import KernelSyntaxError as KernelSyntaxError
from quadpy.errors import KernelTypeError as KernelTypeError
from quadpy.errors import KernelValueError as KernelValueError
from quadpy.errors import KernelZeroDivisionError as KernelZeroDivisionError
from quadpy.errors import LinkError as LinkError
from quadpy.errors import NoDeviceError as NoDeviceError
from quadpy.errors import OutOfDeviceMemory as OutOfDeviceMemory
from quadpy.errors import QuadpyError as QuadpyError
from quadpy.errors import RaceWarning as RaceWarning
from quadpy.errors import RankLostError as RankLostError
from quadpy.errors import RanksDisagreeError as RanksDisagreeError
from quadpy.errors import SavedGraphError as SavedGraphError
from quadpy.errors import StreamError as StreamError
from quadpy.errors import TransportError as TransportError
from quadpy.errors import UnknownTargetError as UnknownTargetError
from quadpy.graph.saved.kernel import SavedKernel as SavedKernel
from quadpy.graph.saved.kernel import load_kernel as load_kernel
from quadpy.hostmath import Matrix as Matrix
from quadpy.hostmath import Struct as Struct
from quadpy.hostmath import Vector as Vector
from quadpy.intrinsics.top import abs as abs
from quadpy.intrinsics.top import acos as acos
from quadpy.intrinsics.top import acosh as acosh
from quadpy.intrinsics.top import activate as activate
from quadpy.intrinsics.top import append as append
from quadpy.intrinsics.top import asin as asin
from quadpy.intrinsics.top import asinh as asinh
from quadpy.intrinsics.top import assume_in_range as assume_in_range
from quadpy.intrinsics.top import atan as atan
from quadpy.intrinsics.top import atan2 as atan2
from quadpy.intrinsics.top import atanh as atanh
from quadpy.intrinsics.top import atomic_add as atomic_add
from quadpy.intrinsics.top import atomic_and as atomic_and
from quadpy.intrinsics.top import atomic_cas as atomic_cas
from quadpy.intrinsics.top import atomic_exchange as atomic_exchange
from quadpy.intrinsics.top import atomic_max as atomic_max
from quadpy.intrinsics.top import atomic_min as atomic_min
from quadpy.intrinsics.top import atomic_mul as atomic_mul
from quadpy.intrinsics.top import atomic_or as atomic_or
from quadpy.intrinsics.top import atomic_sub as atomic_sub
from quadpy.intrinsics.top import atomic_xor as atomic_xor
from quadpy.intrinsics.top import bit_cast as bit_cast
from quadpy.intrinsics.top import bit_shr as bit_shr
from quadpy.intrinsics.top import block_local as block_local
from quadpy.intrinsics.top import cache_read_only as cache_read_only
from quadpy.intrinsics.top import cast as cast
from quadpy.intrinsics.top import cbrt as cbrt
from quadpy.intrinsics.top import ceil as ceil
from quadpy.intrinsics.top import checkpoint as checkpoint
from quadpy.intrinsics.top import clock_counter as clock_counter
from quadpy.intrinsics.top import clz as clz
from quadpy.intrinsics.top import copysign as copysign
from quadpy.intrinsics.top import cos as cos
from quadpy.intrinsics.top import cosh as cosh
from quadpy.intrinsics.top import deactivate as deactivate
from quadpy.intrinsics.top import erf as erf
from quadpy.intrinsics.top import erfc as erfc
from quadpy.intrinsics.top import exp as exp
from quadpy.intrinsics.top import exp10 as exp10
from quadpy.intrinsics.top import exp2 as exp2
from quadpy.intrinsics.top import expm1 as expm1
from quadpy.intrinsics.top import ffs as ffs
from quadpy.intrinsics.top import floor as floor
from quadpy.intrinsics.top import fma as fma
from quadpy.intrinsics.top import fmod as fmod
from quadpy.intrinsics.top import frexp as frexp
from quadpy.intrinsics.top import get_addr as get_addr
from quadpy.intrinsics.top import global_thread_idx as global_thread_idx
from quadpy.intrinsics.top import grouped as grouped
from quadpy.intrinsics.top import hypot as hypot
from quadpy.intrinsics.top import ifte as ifte
from quadpy.intrinsics.top import is_active as is_active
from quadpy.intrinsics.top import j0 as j0
from quadpy.intrinsics.top import j1 as j1
from quadpy.intrinsics.top import length as length
from quadpy.intrinsics.top import lgamma as lgamma
from quadpy.intrinsics.top import log as log
from quadpy.intrinsics.top import log10 as log10
from quadpy.intrinsics.top import log1p as log1p
from quadpy.intrinsics.top import log2 as log2
from quadpy.intrinsics.top import loop_config as loop_config
from quadpy.intrinsics.top import loop_unique as loop_unique
from quadpy.intrinsics.top import max as max
from quadpy.intrinsics.top import min as min
from quadpy.intrinsics.top import ndrange as ndrange
from quadpy.intrinsics.top import no_activate as no_activate
from quadpy.intrinsics.top import one as one
from quadpy.intrinsics.top import popcnt as popcnt
from quadpy.intrinsics.top import pow as pow
from quadpy.intrinsics.top import randn as randn
from quadpy.intrinsics.top import random as random
from quadpy.intrinsics.top import raw_div as raw_div
from quadpy.intrinsics.top import raw_mod as raw_mod
from quadpy.intrinsics.top import rescale_index as rescale_index
from quadpy.intrinsics.top import round as round
from quadpy.intrinsics.top import rsqrt as rsqrt
from quadpy.intrinsics.top import select as select
from quadpy.intrinsics.top import sin as sin
from quadpy.intrinsics.top import sincos as sincos
from quadpy.intrinsics.top import sinh as sinh
from quadpy.intrinsics.top import sqrt as sqrt
from quadpy.intrinsics.top import static as static
from quadpy.intrinsics.top import static_assert as static_assert
from quadpy.intrinsics.top import static_print as static_print
from quadpy.intrinsics.top import stream_parallel as stream_parallel
from quadpy.intrinsics.top import tan as tan
from quadpy.intrinsics.top import tanh as tanh
from quadpy.intrinsics.top import tgamma as tgamma
from quadpy.intrinsics.top import trunc as trunc
from quadpy.intrinsics.top import volatile_load as volatile_load
from quadpy.intrinsics.top import zero as zero
from quadpy.jit.checkpoints import GraphStatus as GraphStatus
from quadpy.jit.kernel import Kernel as Kernel
from quadpy.jit.perf_dispatch import PerfDispatch as PerfDispatch
from quadpy.jit.perf_dispatch import perf_dispatch as perf_dispatch
from quadpy.lang.decorators import data_oriented as data_oriented
from quadpy.lang.decorators import ref as ref
from quadpy.lang.decorators import template as template
from quadpy.lang.tensors import wrap as wrap
from quadpy.math.linalg import cholesky as cholesky
from quadpy.math.linalg import eig as eig
from quadpy.math.linalg import make_spd as make_spd
from quadpy.math.linalg import polar_decompose as polar_decompose
from quadpy.math.linalg import qr as qr
from quadpy.math.linalg import solve as solve
from quadpy.math.linalg import svd as svd
from quadpy.math.linalg import sym_eig as sym_eig
from quadpy.profiler import profile as profile
from quadpy.runtime.arrays.buffer_view import BufferView as BufferView
from quadpy.runtime.arrays.field import Field as Field
from quadpy.runtime.arrays.field_layout import Layout as Layout
from quadpy.runtime.arrays.ndarray import NDArray as NDArray
from quadpy.runtime.arrays.ndarray import from_dlpack as from_dlpack
from quadpy.runtime.arrays.quantised import BitpackedFields as BitpackedFields
from quadpy.runtime.arrays.tensor import Backend as Backend
from quadpy.runtime.arrays.tensor import tensor as tensor
from quadpy.runtime.arrays.tree import FieldsBuilder as FieldsBuilder
from quadpy.runtime.arrays.tree import axes as axes
from quadpy.runtime.arrays.tree import deactivate_all_snodes as deactivate_all_snodes
from quadpy.runtime.arrays.tree import i as i
from quadpy.runtime.arrays.tree import ij as ij
from quadpy.runtime.arrays.tree import ijk as ijk
from quadpy.runtime.arrays.tree import ijkl as ijkl
from quadpy.runtime.arrays.tree import ijl as ijl
from quadpy.runtime.arrays.tree import ik as ik
from quadpy.runtime.arrays.tree import ikl as ikl
from quadpy.runtime.arrays.tree import il as il
from quadpy.runtime.arrays.tree import j as j
from quadpy.runtime.arrays.tree import jk as jk
from quadpy.runtime.arrays.tree import jkl as jkl
from quadpy.runtime.arrays.tree import jl as jl
from quadpy.runtime.arrays.tree import k as k
from quadpy.runtime.arrays.tree import kl as kl
from quadpy.runtime.arrays.tree import l as l
from quadpy.runtime.arrays.tree import root as root
from quadpy.runtime.device.devices import create_event as create_event
from quadpy.runtime.device.devices import create_stream as create_stream
from quadpy.runtime.device.devices import memory_stats as memory_stats
from quadpy.runtime.streams.event import Event as Event
from quadpy.runtime.streams.stream import Stream as Stream
from quadpy.runtime.streams.stream import use_stream as use_stream
from quadpy.simt.square import outer as outer
from quadpy.typed import Array as Array
from quadpy.typed import Array0D as Array0D
from quadpy.typed import Array1D as Array1D
from quadpy.typed import Array2D as Array2D
from quadpy.typed import Array3D as Array3D
from quadpy.typed import Array4D as Array4D
from quadpy.typed import MatrixTensor as MatrixTensor
from quadpy.typed import Template as Template
from quadpy.typed import Tensor as Tensor
from quadpy.typed import VectorTensor as VectorTensor
from quadpy.typed import bf16 as bf16
from quadpy.typed import dataclass as dataclass
from quadpy.typed import f16 as f16
from quadpy.typed import f32 as f32
from quadpy.typed import f64 as f64
from quadpy.typed import field as field
from quadpy.typed import func as func
from quadpy.typed import i16 as i16
from quadpy.typed import i32 as i32
from quadpy.typed import i64 as i64
from quadpy.typed import i8 as i8
from quadpy.typed import kernel as kernel
from quadpy.typed import ndarray as ndarray
from quadpy.typed import pyfunc as pyfunc
from quadpy.typed import real_func as real_func
from quadpy.typed import u1 as u1
from quadpy.typed import u16 as u16
from quadpy.typed import u32 as u32
from quadpy.typed import u64 as u64
from quadpy.typed import u8 as u8

__version_str__: str
__all__ = [
    "ArgumentError",
    "Array",
    "Array0D",
    "Array1D",
    "Array2D",
    "Array3D",
    "Array4D",
    "Backend",
    "BitpackedFields",
    "BoundsError",
    "BufferView",
    "CRITICAL",
    "CacheError",
    "CaptureError",
    "CheckpointError",
    "CodegenError",
    "CompilationError",
    "DEBUG",
    "DeviceError",
    "DistributedError",
    "DriverError",
    "ERROR",
    "Event",
    "EventError",
    "Field",
    "FieldsBuilder",
    "GraphError",
    "GraphStatus",
    "GraphUpdateError",
    "HazardError",
    "HazardWarning",
    "INFO",
    "Kernel",
    "KernelAssertionError",
    "KernelDivergenceError",
    "KernelFault",
    "KernelIndexError",
    "KernelNameError",
    "KernelOverflowError",
    "KernelRaceError",
    "KernelRangeError",
    "KernelShiftError",
    "KernelSourceError",
    "KernelSyntaxError",
    "KernelTypeError",
    "KernelValueError",
    "KernelZeroDivisionError",
    "Layout",
    "LinkError",
    "Matrix",
    "MatrixTensor",
    "NDArray",
    "NoDeviceError",
    "OutOfDeviceMemory",
    "PerfDispatch",
    "QuadpyError",
    "QuadrantsAssertionError",
    "QuadrantsCompilationError",
    "QuadrantsIndexError",
    "QuadrantsNameError",
    "QuadrantsRuntimeError",
    "QuadrantsRuntimeTypeError",
    "QuadrantsSyntaxError",
    "QuadrantsTypeError",
    "RaceWarning",
    "RankLostError",
    "RanksDisagreeError",
    "SavedGraphError",
    "SavedKernel",
    "Stream",
    "StreamError",
    "Struct",
    "TRACE",
    "Template",
    "Tensor",
    "TransportError",
    "UnknownTargetError",
    "Vector",
    "VectorTensor",
    "WARN",
    "__version__",
    "__version_str__",
    "abs",
    "acos",
    "acosh",
    "activate",
    "ad",
    "algorithms",
    "amdgpu",
    "append",
    "arm64",
    "asin",
    "asinh",
    "assume_in_range",
    "atan",
    "atan2",
    "atanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_mul",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "axes",
    "bf16",
    "bfloat16",
    "bit_cast",
    "bit_shr",
    "block_local",
    "cache_read_only",
    "cast",
    "cbrt",
    "ceil",
    "cfg",
    "checkpoint",
    "cholesky",
    "clock_counter",
    "clock_freq_hz",
    "clz",
    "copysign",
    "cos",
    "cosh",
    "cpu",
    "create_event",
    "create_stream",
    "cuda",
    "data_oriented",
    "dataclass",
    "deactivate",
    "deactivate_all_snodes",
    "dist",
    "dump_compile_config",
    "eig",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "extension",
    "f16",
    "f32",
    "f64",
    "ffs",
    "field",
    "float16",
    "float32",
    "float64",
    "floor",
    "fma",
    "fmod",
    "frexp",
    "from_dlpack",
    "func",
    "get_addr",
    "get_max_shared_memory_bytes",
    "global_thread_idx",
    "gpu",
    "graph",
    "grouped",
    "hazards",
    "hypot",
    "i",
    "i16",
    "i32",
    "i64",
    "i8",
    "ifte",
    "ij",
    "ijk",
    "ijkl",
    "ijl",
    "ik",
    "ikl",
    "il",
    "init",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_active",
    "is_arch_supported",
    "is_extension_enabled",
    "is_logging_effective",
    "j",
    "j0",
    "j1",
    "jk",
    "jkl",
    "jl",
    "k",
    "kernel",
    "kl",
    "l",
    "length",
    "lgamma",
    "linalg",
    "load_kernel",
    "log",
    "log10",
    "log1p",
    "log2",
    "loop_config",
    "loop_unique",
    "make_spd",
    "math",
    "max",
    "memory_stats",
    "min",
    "ndarray",
    "ndrange",
    "no_activate",
    "on_reset",
    "one",
    "outer",
    "perf_dispatch",
    "polar_decompose",
    "popcnt",
    "pow",
    "profile",
    "profiler",
    "pyfunc",
    "python",
    "qr",
    "randn",
    "random",
    "raw_div",
    "raw_mod",
    "real_func",
    "ref",
    "rescale_index",
    "reset",
    "root",
    "round",
    "rsqrt",
    "select",
    "set_logging_level",
    "simt",
    "sin",
    "sincos",
    "sinh",
    "solve",
    "sqrt",
    "static",
    "static_assert",
    "static_print",
    "stream_parallel",
    "svd",
    "sym_eig",
    "sync",
    "tan",
    "tanh",
    "template",
    "tensor",
    "tgamma",
    "tools",
    "torch",
    "trunc",
    "types",
    "u1",
    "u16",
    "u32",
    "u64",
    "u8",
    "uint1",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "use_stream",
    "view",
    "volatile_load",
    "wrap",
    "x64",
    "x86_64",
    "zero",
]
