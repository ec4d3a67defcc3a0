# Made from the rows of quadpy.intrinsics: pytest tests/intrinsics --update-golden
# fmt: off
from typing import Any

__all__ = ["SharedArray", "sync", "mem_fence", "thread_idx", "block_idx", "block_dim", "global_thread_idx"]

def SharedArray(shape: Any, dtype: Any) -> Any: """An array of each block's own.  ``shape`` is an int or a tuple, known at compile time; ``dtype`` is a scalar or vector type.  Elements that nobody has written hold any value."""
def sync() -> Any: """All iterations of a block come here before one goes on, and see what the others wrote before."""
def mem_fence() -> Any: """The block sees what this iteration wrote before it sees what it writes after."""
def thread_idx() -> Any: """The number of this iteration in its block, as i32."""
def block_idx() -> Any: """The number of this iteration's block, as i32."""
def block_dim() -> Any: """How many iterations a block has; known at compile time."""
def global_thread_idx() -> Any: """The number of this iteration in the loop, as i32."""
