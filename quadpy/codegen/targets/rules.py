"""The differences between targets, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quadpy.codegen.targets.lanes import Lanes, Writer
from quadpy.core.dtypes import Scalar
from quadpy.core.light import dataclass
from quadpy.core.target import Family
from quadpy.ir.nodes import AtomicOp, Reach


@dataclass(frozen=True, slots=True)
class GpuRules:
    """How a GPU expresses operations that a CPU does not have.

    convention    the calling convention of a kernel
    attributes    of a kernel, by the threads of its blocks
    overlap_attributes  of a kernel whose loads in loops overlap: registers for their values count more than waves
    thread, block the intrinsics that number a thread in its block, and a block in its grid (i32)
    grid_threads  writes the number of the launch's threads, i64, by the threads of a block
    barrier       all threads of the block meet, and see what each of them wrote before
    scopes        LLVM's names for the threads of a wave, of a block, and of the device
    lanes         the instructions of a wave, by their writer, the number of the lane and how many there are
    block_pointer the type of a pointer to arguments in memory
    has_constant_loads  whether there are special loads for memory that nothing writes during the kernel
    shared_bytes  the most shared memory that the code of a block can declare
    most_shared_bytes  the most shared memory of a block: larger than ``shared_bytes`` if a launch can ask for more
    pause         writes the pause of a thread that waits for memory, between two reads
    fences_for_block  whether one thread's fence of the whole device, between two barriers, orders the memory of its
                  whole block
    fast_attributes  of all functions of a fast_math kernel
    approximate   intrinsics of f32 for exp2, log2, sin, cos and rsqrt as the hardware has them
    """

    convention: str
    attributes: Callable[[int], str]
    overlap_attributes: Callable[[int], str]
    thread: str
    block: str
    grid_threads: Callable[[Writer, int], str]
    barrier: Callable[[Writer], None]
    scopes: Mapping[Reach, str]
    lanes: Callable[[Writer, str, int], Lanes]
    block_pointer: str
    has_constant_loads: bool
    shared_bytes: int
    most_shared_bytes: int
    pause: Callable[[Writer], None]
    fences_for_block: bool
    approximate: Mapping[str, str]
    fast_attributes: str = ""


@dataclass(frozen=True, slots=True)
class Saturation:
    """``widths`` of a float and an integer (32 or 64 bits) between which one instruction converts, signed and unsigned,
    so that it saturates and a NaN becomes 0.

    ``register`` is inline assembly's letter for the float's registers, if LLVM cannot select its own fence.
    ``clamps`` asks for comparisons around every plain conversion, if LLVM does not vectorise its saturating one.
    """

    widths: frozenset[tuple[int, int]] = frozenset()
    register: str = ""
    clamps: bool = False


@dataclass(frozen=True, slots=True)
class TargetRules:
    """How one target expresses operations that all targets have.

    pointer         the type of a pointer into arrays and scratch memory
    private         the type of a pointer to a variable of one thread
    alloca          what follows the type in an ``alloca``
    narrow_offsets  whether byte offsets into arrays have 32 bits if the kernel's index type does
    constant_offsets  whether memory instructions add a pointer, a 32-bit offset in bytes and a constant
    scope           scope and order of an atomic instruction
    load_now        the words before the type of a load that sees what other threads write
    atomic_tags     metadata that lets the hardware do a read-modify-write itself
    clock           the intrinsic that reads a counter of the processor, 64 bits wide: see ``runtime.clock``
    most_selects    of so many variables a run-time number picks one by comparing with each; more are in memory
    has_mxcsr       whether there is x86's register of floating-point modes
    gpu             the rules that only a GPU has; None for a CPU
    saturating      conversions from floats to integers that saturate by themselves; NVIDIA has none, since its assembler
                    folds the conversion of infinity to 0
    has_atomic      whether LLVM may be given a read-modify-write of a type; otherwise it is a compare-and-swap loop
    flushes         whether sums of f32 by the units of global memory take subnormal numbers for zeros
    """

    family: Family
    pointer: str
    private: str
    alloca: str
    narrow_offsets: bool
    constant_offsets: bool
    scope: str
    load_now: str
    atomic_tags: tuple[str, ...]
    clock: str
    most_selects: int
    has_mxcsr: bool
    has_atomic: Callable[[AtomicOp, Scalar], bool]
    gpu: GpuRules | None = None
    saturating: Saturation = Saturation()
    flushes: bool = False
