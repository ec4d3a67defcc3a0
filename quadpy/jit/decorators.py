"""``qp.kernel``: the decorator that turns a function into a kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from quadpy.core.importing import import_late
from quadpy.core.public import public, require_switch
from quadpy.errors import KernelSourceError
from quadpy.intrinsics import Builtin
from quadpy.jit.kernel import Kernel
from quadpy.jit.options import KernelOptions
from quadpy.lang.decorators import Func
from quadpy.runtime.launch.fusion import Fuse

if TYPE_CHECKING:
    from quadpy.jit.checkpoints import CheckpointKernel


@overload
def kernel(
    fn: Callable[..., object], /, *, fastcache: bool = False, graph: bool = False, checkpoints: Literal[False] = False,
    fuse: Fuse = "auto", wave_size: int | None = None, debug: bool | None = None, pure: bool | None = None,
) -> Kernel: ...  # fmt: skip
@overload
def kernel(
    *, fastcache: bool = False, graph: bool = False, checkpoints: Literal[False] = False, fuse: Fuse = "auto",
    wave_size: int | None = None, debug: bool | None = None, pure: bool | None = None,
) -> Callable[[Callable[..., object]], Kernel]: ...  # fmt: skip
@overload
def kernel(
    *, fastcache: bool = False, graph: Literal[True], checkpoints: Literal[True], fuse: Fuse = "auto",
    wave_size: int | None = None, debug: bool | None = None, pure: bool | None = None,
) -> Callable[[Callable[..., object]], CheckpointKernel]: ...  # fmt: skip
@public
def kernel(
    fn: Callable[..., object] | None = None, /, *, fastcache: bool = False, graph: bool = False, checkpoints: bool = False,
    fuse: Fuse = "auto", wave_size: int | None = None, debug: bool | None = None, pure: bool | None = None,
) -> Kernel | Callable[[Callable[..., object]], Kernel]:  # fmt: skip
    """Makes a kernel of a function: its top-level ``for`` loops run in parallel.

    ``graph=True`` makes a graph kernel of it: its tasks become one graph, with loops over tasks (``qp.graph.do_while``)
    and sections that run at once (``qp.graph.parallel``); it returns nothing.
    ``checkpoints=True`` lets a graph kernel pause at its ``qp.checkpoint(…)`` blocks: a call returns a ``GraphStatus``, and
    ``kernel.resume(…, from_checkpoint=…)`` goes on.
    ``fuse`` says whether its tasks, loops included, run as one launch on a GPU: ``True`` wherever that is possible,
    ``"auto"`` where it is also expected to be faster, ``False`` never; ``Kernel.fusion`` says what a call would do.
    ``wave_size``, 32 or 64, is the number of lanes of its waves (``qp.simt.subgroup``) where the processor has both, as RDNA
    and the CPU have; by default that of ``qp.init``, else the processor's own.
    ``debug`` says whether it checks indices, overflow, divisions, casts and assertions while it runs; by default,
    ``qp.init`` decides.
    ``fastcache`` and ``pure`` are accepted for programs written for Quadrants; quadpy caches every kernel that way.

    Raises:
        KernelSourceError: ``fn`` is not a Python function.
        ArgumentError: ``fuse`` is none of the three; it or ``checkpoints`` is True without ``graph=True``; ``wave_size`` is neither 32 nor 64;
            another option is neither True nor False, or there is no such option.
    """
    require_switch(fastcache, "fastcache")
    require_switch(pure, "pure")
    options = KernelOptions(graph, fuse, wave_size, debug, checkpoints=checkpoints).require()
    if fn is None:
        return functools.partial(
            kernel, graph=graph, checkpoints=checkpoints, fuse=fuse, wave_size=wave_size, debug=debug
        )
    if not hasattr(fn, "__code__"):
        hint = "put @qp.kernel above a def"
        if isinstance(fn, (staticmethod, classmethod, property)):
            hint = f"put @{type(fn).__name__} above @qp.kernel"
        raise KernelSourceError(f"{fn!r} is not a Python function", hint=hint)
    made: type[Kernel] = import_late("quadpy.jit.checkpoints").CheckpointKernel if checkpoints else Kernel
    return made(fn, options)


def _on_host(called: Builtin | Func, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return import_late("quadpy.jit.host_calls").call_on_host(called, args, kwargs)  # loads LLVM, so only now


Builtin.on_host = Func.on_host = _on_host
