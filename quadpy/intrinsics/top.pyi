# Made from the rows of quadpy.intrinsics: pytest tests/intrinsics --update-golden
# fmt: off
from typing import Any, TypeVar, overload

from quadpy.intrinsics.numbers import *
from quadpy.runtime.elements.values import Elements

_V = TypeVar("_V", bound=float | Elements)  # a number, a vector or a matrix
_T = TypeVar("_T")
_E = TypeVar("_E", bound=Elements)

__all__ = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "tgamma", "lgamma", "j0", "j1", "sincos", "frexp", "floor", "ceil", "round", "trunc", "abs", "popcnt", "clz", "ffs", "atan2", "hypot", "pow", "fmod", "copysign", "min", "max", "fma", "select", "raw_div", "raw_mod", "bit_shr", "cast", "bit_cast", "random", "randn", "atomic_add", "atomic_sub", "atomic_mul", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor", "atomic_exchange", "atomic_cas", "ndrange", "grouped", "static", "static_assert", "static_print", "loop_config", "block_local", "cache_read_only", "assume_in_range", "loop_unique", "global_thread_idx", "ifte", "zero", "one", "volatile_load", "clock_counter", "get_addr", "is_active", "activate", "deactivate", "append", "length", "rescale_index", "no_activate", "stream_parallel"]

def raw_div(x: Any, y: Any) -> Any: """Integer division that truncates, as in C."""
def raw_mod(x: Any, y: Any) -> Any: """Remainder with the sign of x, as in C."""
def bit_shr(x: Any, y: Any) -> Any: """Shift right that fills with zeros."""
@overload
def cast(x: _E, dtype: Any) -> _E: ...
@overload
def cast(x: Any, dtype: type[_T]) -> _T: """x converted to dtype."""
def bit_cast(x: Any, dtype: Any) -> Any: """The bits of x as dtype, which has the same width."""
@overload
def random() -> float: ...
@overload
def random(dtype: type[_T]) -> _T: """Uniform in [0, 1) for floats, over the whole range for integers."""
@overload
def randn() -> float: ...
@overload
def randn(dtype: type[_T]) -> _T: """Normally distributed, mean 0, variance 1."""
def atomic_add(x: _V, y: _V) -> _V: """x += y in one step; returns the old x."""
def atomic_sub(x: _V, y: _V) -> _V: """x -= y in one step; returns the old x."""
def atomic_mul(x: _V, y: _V) -> _V: """x *= y in one step; returns the old x."""
def atomic_min(x: _V, y: _V) -> _V: """x = min(x, y) in one step; returns the old x."""
def atomic_max(x: _V, y: _V) -> _V: """x = max(x, y) in one step; returns the old x."""
def atomic_and(x: _V, y: _V) -> _V: """x &= y in one step; returns the old x."""
def atomic_or(x: _V, y: _V) -> _V: """x |= y in one step; returns the old x."""
def atomic_xor(x: _V, y: _V) -> _V: """x ^= y in one step; returns the old x."""
def atomic_exchange(x: _V, y: _V) -> _V: """x = y in one step; returns the old x."""
def atomic_cas(x: _V, expected: _V, desired: _V) -> _V: """x = desired in one step if x is expected, to the bit; returns the old x."""
def ndrange(*ranges: Any, axes: Any = ...) -> Any: """The product of ranges ``n`` or ``(a, b)``. The last index changes fastest, unless ``axes`` lists the ranges, outermost first."""
def grouped(x: Any) -> Any: """The indices of x, or of an ndrange, as a vector."""
@overload
def static(first: Any, second: Any, /, *more: Any) -> tuple[Any, ...]: ...
@overload
def static(value: _T, /) -> _T: """Evaluates a value at compile time, or several as a tuple; a loop over it is unrolled, and an if on it keeps one branch."""
def static_assert(cond: Any, message: Any = ...) -> Any: """Fails the compilation unless cond holds."""
def static_print(*args: Any) -> Any: """Prints at compile time."""
def loop_config(*, block_dim: Any = ..., serialize: Any = ..., name: Any = ..., **ignored: Any) -> Any: """Options of the loop that follows."""
def block_local(*arrays: Any) -> Any: """A hint that has no effect: the compiler decides what to keep in fast memory."""
def cache_read_only(*arrays: Any) -> Any: """A hint that has no effect: the compiler sees which arrays a task only reads."""
def assume_in_range(value: Any, base: Any, low: Any, high: Any) -> Any: """A hint that has no effect; returns ``value``."""
def loop_unique(value: Any, covers: Any = ...) -> Any: """A hint that has no effect; returns ``value``."""
def global_thread_idx() -> Any: """The number of this iteration in its parallel loop, as i32, different for each: consecutive from 0 if the steps are 1; 0 outside loops."""
def ifte(cond: Any, a: Any, b: Any) -> Any: """a if cond holds, else b; only that one is evaluated: ``a if cond else b``."""
def zero(x: _T) -> _T: """0 of the shape and type of x."""
def one(x: _T) -> _T: """1 of the shape and type of x."""
def volatile_load(x: Any) -> Any: """Reads the element x from memory each time, so it sees what other iterations, streams or the host wrote meanwhile."""
def clock_counter() -> Any: """Ticks of a counter of the processor, as i64; ``qp.clock_freq_hz()`` of them are a second. Only differences within one iteration have a meaning."""
def get_addr(x: Any, index: Any) -> Any: """The address of an element, as u64; x is an array, a field, or the node of a field."""
def is_active(node: Any, index: Any) -> Any: """Whether the cell of a node is active; for a list, whether the element exists."""
def activate(node: Any, index: Any) -> Any: """Activates a cell and the cells that contain it."""
def deactivate(node: Any, index: Any) -> Any: """Deactivates a cell and sets its contents to 0; for a list, removes all elements."""
def append(node: Any, index: Any, value: Any) -> Any: """Appends an element to a list and returns its position; if the list is full, nothing is stored, and the result is the capacity or more."""
def length(node: Any, index: Any = ...) -> Any: """The number of elements of a list."""
def rescale_index(a: Any, b: Any, index: Any) -> Any: """The index of the cell of b that contains the cell of a with this index; a and b are nodes or fields."""
def no_activate(*fields: Any) -> Any: """A hint that has no effect: writes to active cells cost next to nothing."""
def stream_parallel() -> Any: """At the top level of a kernel: adjacent blocks run at the same time, each on its own stream."""
