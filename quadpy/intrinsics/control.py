"""Loops, the order of tasks, and operations at compile time."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics.rows import Effect, Row, Syntax, Traced

__all__ = ["GROUPS"]

GROUPS: Final = {
    "Loops and compile time": (
        Row("ndrange", "*ranges, axes=None", "The product of several ranges, each ``n`` or ``(a, b)``. The last index changes fastest, unless ``axes`` lists the ranges by number, outermost first.", Traced(), compile_time=True),
        Row("grouped", "x", "The indices of an array, a field or an ndrange, each as one vector.", Traced(), compile_time=True),
        Row("static", "*values", "Evaluates a value, or several as a tuple, at compile time; a loop over it is unrolled, and an ``if`` on it keeps one branch.", Traced(), compile_time=True),
        Row("static_assert", "cond, message='static assertion failed'", "Fails the compilation with ``message`` unless cond is true.", Traced(), compile_time=True),
        Row("static_print", "*args", "Prints the arguments when the kernel is compiled.", Traced(), compile_time=True),
        Row("loop_config", "*, block_dim=None, serialize=False, name=None, **ignored", "Sets options of the loop that follows.",
            Syntax("qp.loop_config(...)")),
        Row("block_local", "*arrays", "A hint that has no effect: the compiler decides what to keep in fast memory.", Traced(),
            compile_time=True),
        Row("cache_read_only", "*arrays", "A hint that has no effect: the compiler sees which arrays a task only reads.", Traced(),
            compile_time=True),
        Row("assume_in_range", "value, base, low, high", "A hint that has no effect; returns ``value``.", Traced(), compile_time=True),
        Row("loop_unique", "value, covers=None", "A hint that has no effect; returns ``value``.", Traced(), compile_time=True),
        Row("global_thread_idx", "", "The number of this iteration in its parallel loop, as i32. It is unique, and counts up from 0 if the steps of the ranges are 1. Outside loops it is 0.", Traced(),
            compile_time=True),
        Row("ifte", "cond, a, b", "The same as ``a if cond else b``: only the chosen operand is evaluated.", Traced()),
        Row("zero", "x", "Zero in the shape and type of x.", Traced()),
        Row("one", "x", "One in the shape and type of x.", Traced()),
    ),
    "Memory and time": (
        Row("volatile_load", "x", "Reads the element x from memory each time, and therefore sees what other iterations, streams "
            "or the host have written meanwhile.", Traced(), effects=Effect.OBSERVES),
        Row("clock_counter", "", "The value of a clock of the processor, as i64, with ``qp.clock_freq_hz()`` ticks per second. Only "
            "differences within one iteration are meaningful.", Traced(), effects=Effect.OBSERVES),
        Row("get_addr", "x, index", "The address of an element, as u64; x is an array, a field, or the node of a field.",
            Traced(), compile_time=True),
    ),
    "Cells of sparse trees": (
        Row("is_active", "node, index", "Whether a cell of a node is active; for a list, whether the element exists.", Traced(),
            compile_time=True),
        Row("activate", "node, index", "Activates a cell and the cells that contain it.", Traced(), compile_time=True),
        Row("deactivate", "node, index", "Deactivates a cell and sets its contents to 0; for a list, removes all elements.", Traced(),
            compile_time=True),
        Row("append", "node, index, value", "Appends an element to a list and returns its position; if the list is full, "
            "nothing is stored, and the result is the capacity or more.", Traced(), compile_time=True),
        Row("length", "node, index=None", "The number of elements of a list.", Traced(), compile_time=True),
        Row("rescale_index", "a, b, index", "The index of the cell of b that contains the cell of a with this index; a and "
            "b are nodes or fields.", Traced(), compile_time=True),
        Row("no_activate", "*fields", "A hint that has no effect: writes to active cells cost next to nothing.", Traced(),
            compile_time=True),
    ),
    "Order of tasks": (
        Row("stream_parallel", "", "At the top level of a kernel: adjacent blocks of this kind run at the same time, each on its own stream.",
            Syntax("with qp.stream_parallel():")),
        Row("graph.do_while", "cond", "In a graph kernel: runs the body once, and repeats it while element 0 of ``cond`` is not 0.",
            Syntax("while qp.graph.do_while(cond):")),
        Row("checkpoint", "cp_id, yield_on", "In a graph kernel with ``checkpoints=True``: when the body is done and ``yield_on[()]`` is not 0, the kernel "
            "pauses. The call returns, and ``kernel.resume(…, from_checkpoint=cp_id)`` goes on with the body. ``cp_id`` is an int or a member of an IntEnum.",
            Syntax("with qp.checkpoint(cp_id, yield_on=flag):")),
        Row("graph.parallel", "", "In a graph kernel: adjacent blocks of this kind run at the same time.", Syntax("with qp.graph.parallel():")),
        Row("graph.parallel_context", "", "In a graph kernel, around ``parallel()`` blocks: they run at the same time, and are "
            "joined at the end of this block.", Syntax("with qp.graph.parallel_context():")),
    ),
}  # fmt: skip
