"""quadpy's types, arrays and kernels as type checkers and editors see them; none of this exists at run time.

In a kernel, ``qp.f32`` is a 32-bit type; to a type checker, the annotation is ``float``, so that numbers can be
passed.  Arrays are protocols that NumPy arrays, torch tensors, fields and ``qp.ndarray`` satisfy.
"""

from collections.abc import Callable, Iterator
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)

from typing_extensions import Unpack, dataclass_transform

from quadpy.hostmath import Matrix, MatrixType, Vector, VectorType
from quadpy.jit import kernel as _jit
from quadpy.jit.checkpoints import CheckpointKernel
from quadpy.lang import decorators as _lang
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import Layout
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.streams.stream import Stream

__all__ = [
    "Array", "Array0D", "Array1D", "Array2D", "Array3D", "Array4D", "MatrixTensor", "Template", "Tensor", "VectorTensor",
    "bf16", "dataclass", "f16", "f32", "f64", "field", "func", "i8", "i16", "i32", "i64", "kernel", "ndarray", "pyfunc",
    "real_func",
    "u1", "u8", "u16", "u32", "u64",
]  # fmt: skip

f16: TypeAlias = float
bf16: TypeAlias = float
f32: TypeAlias = float
f64: TypeAlias = float
i8: TypeAlias = int
i16: TypeAlias = int
i32: TypeAlias = int
i64: TypeAlias = int
u8: TypeAlias = int
u16: TypeAlias = int
u32: TypeAlias = int
u64: TypeAlias = int
u1: TypeAlias = bool

Template: TypeAlias = Any
Tensor: TypeAlias = Any
VectorTensor: TypeAlias = Any
MatrixTensor: TypeAlias = Any

vec2: TypeAlias = Vector
vec3: TypeAlias = Vector
vec4: TypeAlias = Vector
ivec2: TypeAlias = Vector
ivec3: TypeAlias = Vector
ivec4: TypeAlias = Vector
uvec2: TypeAlias = Vector
uvec3: TypeAlias = Vector
uvec4: TypeAlias = Vector
mat2: TypeAlias = Matrix
mat3: TypeAlias = Matrix
mat4: TypeAlias = Matrix

_T = TypeVar("_T")
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Q = ParamSpec("_Q")
_I = TypeVar("_I")
_Fuse: TypeAlias = bool | Literal["auto"]

class _Indexed(Protocol[_T, _I]):
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, index: _I, /) -> _T: ...
    def __setitem__(self, index: _I, value: _T, /) -> None: ...
    def __iter__(self) -> Iterator[_I]: ...

class Array(Protocol[_T]):
    """An array of elements of type ``T``; ``Array0D`` to ``Array4D`` also say how many axes it has."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, index: Any, /) -> _T: ...
    def __setitem__(self, index: Any, value: _T, /) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...

Array0D: TypeAlias = _Indexed[_T, None]
Array1D: TypeAlias = _Indexed[_T, int]
Array2D: TypeAlias = _Indexed[_T, tuple[int, int]]
Array3D: TypeAlias = _Indexed[_T, tuple[int, int, int]]
Array4D: TypeAlias = _Indexed[_T, tuple[int, int, int, int]]

class Kernel(_jit.Kernel, Generic[_P, _R]):
    """A kernel that keeps the parameters and the result of its function."""

    @overload  # type: ignore[override]  # narrower on purpose: it keeps the function's parameters
    def __call__(self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self, /, *args: Any, stream: Stream | int | None, **kwargs: Any) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: type) -> Kernel[_P, _R]: ...
    @overload
    def __get__(
        self: Kernel[Concatenate[Any, _Q], _R], instance: object, owner: type | None = None
    ) -> BoundKernel[_Q, _R]: ...

class BoundKernel(_jit.BoundKernel, Generic[_P, _R]):
    """A kernel that is bound to an object; ``self`` is not among its parameters."""

    @overload  # type: ignore[override]  # narrower on purpose: it keeps the method's parameters
    def __call__(self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __call__(self, /, *args: Any, stream: Stream | int | None, **kwargs: Any) -> _R: ...

class Func(_lang.Func, Generic[_P, _R]):
    """A function of the kernel language that keeps the parameters and the result of its Python function."""

    def __call__(self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: type) -> Func[_P, _R]: ...
    @overload
    def __get__(self: Func[Concatenate[Any, _Q], _R], instance: object, owner: type | None = None) -> Func[_Q, _R]: ...

@overload
def kernel(
    fn: Callable[_P, _R], /, *, fastcache: bool = False, graph: bool = False, fuse: _Fuse = "auto",
    wave_size: int | None = None, debug: bool | None = None,
) -> Kernel[_P, _R]: ...  # fmt: skip
@overload
def kernel(
    *, fastcache: bool = False, graph: bool = False, fuse: _Fuse = "auto", wave_size: int | None = None,
    debug: bool | None = None,
) -> Callable[[Callable[_P, _R]], Kernel[_P, _R]]: ...  # fmt: skip
@overload
def kernel(
    *, fastcache: bool = False, graph: Literal[True], checkpoints: Literal[True], fuse: _Fuse = "auto",
    wave_size: int | None = None, debug: bool | None = None,
) -> Callable[[Callable[..., object]], CheckpointKernel]: ...  # fmt: skip
@dataclass_transform()
def dataclass(cls: type[_T], /) -> type[_T]: ...
def func(fn: Callable[_P, _R], /) -> Func[_P, _R]: ...
def real_func(fn: Callable[_P, _R], /) -> Func[_P, _R]: ...
def pyfunc(fn: Callable[_P, _R], /) -> Func[_P, _R]: ...

# Fields and arrays have an element type and, if the type of ``shape`` shows it, a number of axes; a struct type gives Any.

_N = TypeVar("_N", bool, int, float)
_Shape: TypeAlias = int | tuple[int, ...]

class _FieldOptions(TypedDict, total=False):
    order: str | None
    offset: _Shape | None
    layout: Layout
    needs_grad: bool
    needs_dual: bool
    name: str

@overload
def field(dtype: type[_N], shape: int, **options: Unpack[_FieldOptions]) -> Field[_N, SupportsIndex]: ...
@overload
def field(
    dtype: type[_N], shape: tuple[int, int], **options: Unpack[_FieldOptions]
) -> Field[_N, tuple[SupportsIndex, SupportsIndex]]: ...
@overload
def field(
    dtype: type[_N], shape: tuple[int, int, int], **options: Unpack[_FieldOptions]
) -> Field[_N, tuple[SupportsIndex, SupportsIndex, SupportsIndex]]: ...
@overload
def field(
    dtype: type[_N], shape: tuple[int, int, int, int], **options: Unpack[_FieldOptions]
) -> Field[_N, tuple[SupportsIndex, SupportsIndex, SupportsIndex, SupportsIndex]]: ...
@overload
def field(dtype: type[_N], shape: _Shape | None = None, **options: Unpack[_FieldOptions]) -> Field[_N]: ...
@overload
def field(dtype: VectorType, shape: _Shape | None = None, **options: Unpack[_FieldOptions]) -> Field[Vector]: ...
@overload
def field(dtype: MatrixType, shape: _Shape | None = None, **options: Unpack[_FieldOptions]) -> Field[Matrix]: ...
@overload
def field(dtype: Any, shape: _Shape | None = None, **options: Unpack[_FieldOptions]) -> Field: ...
@overload
def ndarray(
    dtype: type[_N], shape: int, needs_grad: bool = False, *, stream: object = None
) -> NDArray[_N, SupportsIndex]: ...
@overload
def ndarray(
    dtype: type[_N], shape: tuple[int, int], needs_grad: bool = False, *, stream: object = None
) -> NDArray[_N, tuple[SupportsIndex, SupportsIndex]]: ...
@overload
def ndarray(
    dtype: type[_N], shape: tuple[int, int, int], needs_grad: bool = False, *, stream: object = None
) -> NDArray[_N, tuple[SupportsIndex, SupportsIndex, SupportsIndex]]: ...
@overload
def ndarray(
    dtype: type[_N], shape: tuple[int, int, int, int], needs_grad: bool = False, *, stream: object = None
) -> NDArray[_N, tuple[SupportsIndex, SupportsIndex, SupportsIndex, SupportsIndex]]: ...
@overload
def ndarray(dtype: type[_N], shape: _Shape, needs_grad: bool = False, *, stream: object = None) -> NDArray[_N]: ...
@overload
def ndarray(
    dtype: VectorType, shape: _Shape, needs_grad: bool = False, *, stream: object = None
) -> NDArray[Vector]: ...
@overload
def ndarray(
    dtype: MatrixType, shape: _Shape, needs_grad: bool = False, *, stream: object = None
) -> NDArray[Matrix]: ...
@overload
def ndarray(dtype: Any, shape: _Shape, needs_grad: bool = False, *, stream: object = None) -> Any: ...
