# Made from the rows of quadpy.intrinsics: pytest tests/intrinsics --update-golden
# fmt: off
from typing import Any, TypeVar, overload

from quadpy.intrinsics.numbers import *
from quadpy.runtime.elements.values import Elements

_V = TypeVar("_V", bound=float | Elements)  # a number, a vector or a matrix
_T = TypeVar("_T")
_E = TypeVar("_E", bound=Elements)

__all__ = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "tgamma", "lgamma", "j0", "j1", "sincos", "frexp", "floor", "ceil", "round", "trunc", "abs", "popcnt", "clz", "ffs", "atan2", "hypot", "pow", "fmod", "copysign", "min", "max", "fma", "select", "raw_div", "raw_mod", "bit_shr", "cast", "bit_cast", "random", "randn", "atomic_add", "atomic_sub", "atomic_mul", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor", "atomic_exchange", "atomic_cas", "ndrange", "grouped", "static", "static_assert", "static_print", "loop_config", "block_local", "cache_read_only", "assume_in_range", "loop_unique", "global_thread_idx", "ifte", "zero", "one", "volatile_load", "clock_counter", "get_addr", "is_active", "activate", "deactivate", "append", "length", "rescale_index", "no_activate", "stream_parallel", "checkpoint"]

def raw_div(x: Any, y: Any) -> Any: """Integer division, truncated toward 0."""
def raw_mod(x: Any, y: Any) -> Any: """Remainder of the truncated division, with the sign of x."""
def bit_shr(x: Any, y: Any) -> Any: """Right shift that fills with zeros."""
@overload
def cast(x: _E, dtype: Any) -> _E: ...
@overload
def cast(x: Any, dtype: type[_T]) -> _T: """x converted to dtype."""
def bit_cast(x: Any, dtype: Any) -> Any: """The bits of x reinterpreted as dtype, which must have the same width."""
@overload
def random() -> float: ...
@overload
def random(dtype: type[_T]) -> _T: """A uniform random number: a float in [0, 1), or an integer of the whole range of its type."""
@overload
def randn() -> float: ...
@overload
def randn(dtype: type[_T]) -> _T: """A random number of the normal distribution with mean 0 and variance 1."""
def atomic_add(x: _V, y: _V) -> _V: """Performs ``x += y`` atomically and returns the old x."""
def atomic_sub(x: _V, y: _V) -> _V: """Performs ``x -= y`` atomically and returns the old x."""
def atomic_mul(x: _V, y: _V) -> _V: """Performs ``x *= y`` atomically and returns the old x."""
def atomic_min(x: _V, y: _V) -> _V: """Performs ``x = min(x, y)`` atomically and returns the old x."""
def atomic_max(x: _V, y: _V) -> _V: """Performs ``x = max(x, y)`` atomically and returns the old x."""
def atomic_and(x: _V, y: _V) -> _V: """Performs ``x &= y`` atomically and returns the old x."""
def atomic_or(x: _V, y: _V) -> _V: """Performs ``x |= y`` atomically and returns the old x."""
def atomic_xor(x: _V, y: _V) -> _V: """Performs ``x ^= y`` atomically and returns the old x."""
def atomic_exchange(x: _V, y: _V) -> _V: """Performs ``x = y`` atomically and returns the old x."""
def atomic_cas(x: _V, expected: _V, desired: _V) -> _V: """Performs ``x = desired`` atomically if x equals ``expected`` bit for bit, and returns the old x."""
def ndrange(*ranges: Any, axes: Any = ...) -> Any: """The product of several ranges, each ``n`` or ``(a, b)``. The last index changes fastest, unless ``axes`` lists the ranges by number, outermost first."""
def grouped(x: Any) -> Any: """The indices of an array, a field or an ndrange, each as one vector."""
@overload
def static(first: Any, second: Any, /, *more: Any) -> tuple[Any, ...]: ...
@overload
def static(value: _T, /) -> _T: """Evaluates a value, or several as a tuple, at compile time; a loop over it is unrolled, and an ``if`` on it keeps one branch."""
def static_assert(cond: Any, message: Any = ...) -> Any: """Fails the compilation with ``message`` unless cond is true."""
def static_print(*args: Any) -> Any: """Prints the arguments when the kernel is compiled."""
def loop_config(*, block_dim: Any = ..., serialize: Any = ..., name: Any = ..., **ignored: Any) -> Any: """Sets options of the loop that follows."""
def block_local(*arrays: Any) -> Any: """A hint that has no effect: the compiler decides what to keep in fast memory."""
def cache_read_only(*arrays: Any) -> Any: """A hint that has no effect: the compiler sees which arrays a task only reads."""
def assume_in_range(value: Any, base: Any, low: Any, high: Any) -> Any: """A hint that has no effect; returns ``value``."""
def loop_unique(value: Any, covers: Any = ...) -> Any: """A hint that has no effect; returns ``value``."""
def global_thread_idx() -> Any: """The number of this iteration in its parallel loop, as i32. It is unique, and counts up from 0 if the steps of the ranges are 1. Outside loops it is 0."""
def ifte(cond: Any, a: Any, b: Any) -> Any: """The same as ``a if cond else b``: only the chosen operand is evaluated."""
def zero(x: _T) -> _T: """Zero in the shape and type of x."""
def one(x: _T) -> _T: """One in the shape and type of x."""
def volatile_load(x: Any) -> Any: """Reads the element x from memory each time, and therefore sees what other iterations, streams or the host have written meanwhile."""
def clock_counter() -> Any: """The value of a clock of the processor, as i64, with ``qp.clock_freq_hz()`` ticks per second. Only differences within one iteration are meaningful."""
def get_addr(x: Any, index: Any) -> Any: """The address of an element, as u64; x is an array, a field, or the node of a field."""
def is_active(node: Any, index: Any) -> Any: """Whether a cell of a node is active; for a list, whether the element exists."""
def activate(node: Any, index: Any) -> Any: """Activates a cell and the cells that contain it."""
def deactivate(node: Any, index: Any) -> Any: """Deactivates a cell and sets its contents to 0; for a list, removes all elements."""
def append(node: Any, index: Any, value: Any) -> Any: """Appends an element to a list and returns its position; if the list is full, nothing is stored, and the result is the capacity or more."""
def length(node: Any, index: Any = ...) -> Any: """The number of elements of a list."""
def rescale_index(a: Any, b: Any, index: Any) -> Any: """The index of the cell of b that contains the cell of a with this index; a and b are nodes or fields."""
def no_activate(*fields: Any) -> Any: """A hint that has no effect: writes to active cells cost next to nothing."""
def stream_parallel() -> Any: """At the top level of a kernel: adjacent blocks of this kind run at the same time, each on its own stream."""
def checkpoint(cp_id: Any, yield_on: Any) -> Any: """In a graph kernel with ``checkpoints=True``: when the body is done and ``yield_on[()]`` is not 0, the kernel pauses. The call returns, and ``kernel.resume(…, from_checkpoint=cp_id)`` goes on with the body. ``cp_id`` is an int or a member of an IntEnum."""
