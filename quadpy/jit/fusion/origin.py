"""The origin of calls' code, for fusing several calls into one launch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from quadpy.core.artifact import AbiLayout, CodeObject
from quadpy.core.dtypes import Scalar
from quadpy.core.formula import Formula
from quadpy.core.importing import import_late
from quadpy.core.target import parse_target
from quadpy.errors import CodegenError
from quadpy.jit.fusion.call_code import CallCode, costs_of

if TYPE_CHECKING:  # the compiler is loaded for what is not in the cache
    from quadpy.ir import nodes as ir
    from quadpy.jit.fusion.fused_calls import FusedCalls
    from quadpy.jit.gpu_plan import GpuPlan
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.drivers.driver import FunctionHandle
    from quadpy.runtime.drivers.graph_driver import CopyWork, FillWork
    from quadpy.runtime.launch.fusion import Fuse
    from quadpy.runtime.launch.launch import Call, Prepared
    from quadpy.runtime.streams.stream import Stream


class Code(CallCode):
    """The code of a call on ``device``: an ``Origin``.

    ``mode`` is its index type, whether it is fast rather than exact, and the size of its waves; ``trace`` gives the IR, and
    ``predicated`` the plan of such code, when they are first asked.
    """

    def __init__(
        self, device: Device, name: str, layout: AbiLayout, extents: Sequence[Formula], launches: int, *, depth: int,
        loops: bool, mode: tuple[Scalar, bool, int], trace: Callable[[], ir.Kernel],
        predicated: Callable[[], GpuPlan] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(layout, extents, depth=depth, loops=loops)
        self.mode, self._predicated, self.repeatable = mode, predicated, predicated is not None
        self.device, self.name, self.launches = device, name, launches
        self._trace = trace

    @functools.cached_property
    def kernel(self) -> ir.Kernel:
        return self._trace()

    @functools.cached_property
    def text(self) -> str:
        """The printed IR, which identifies the code by value."""
        text: str = import_late("quadpy.ir.printer").print_ir(self.kernel)
        return text

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Code):
            return self is other
        try:
            return self.device is other.device and self.text == other.text
        except CodegenError:  # the IR of one of them cannot be traced again
            return False

    def __hash__(self) -> int:
        return hash((self.name, self.layout))

    def fuse(self, levels: Sequence[Sequence[Call]], fuse: Fuse) -> FusedCalls | str:
        """See ``Origin.fuse``."""
        found: FusedCalls | str = import_late("quadpy.jit.fusion.fuse").fuse_calls(self, levels, fuse)  # compiles
        return found

    @functools.cached_property
    def why_not_alone(self) -> str:
        """Like ``Origin.why_not_alone``; the values of a call do not matter."""
        found = self.fuse([[(self, bytes(self.layout.size))]], True)
        return found if isinstance(found, str) else found.why_not()

    def of(self, work: FillWork | CopyWork) -> Call | str:
        """See ``Origin.of``."""
        found: Call | str = import_late("quadpy.jit.fusion.fuse").call_of(self, work)
        return found

    def predicated(self, call: Prepared, before: Prepared | None, on: Stream) -> Prepared:
        """See ``Origin.predicated``."""
        assert self._predicated is not None
        return self._predicated().predicated(call, before, on)

    def condition_setter(self, *, indirect: bool) -> FunctionHandle:
        """See ``Origin.condition_setter``."""
        setter = import_late("quadpy.codegen.support.loop_condition")
        code = setter.condition_setter_code(parse_target(self.device.driver.info.arch))
        name = setter.CONDITION_SETTER_INDIRECT if indirect else setter.CONDITION_SETTER
        return self.device.modules.load(code).function(name)


def code_of(
    device: Device, name: str, code: CodeObject, mode: tuple[Scalar, bool, int], trace: Callable[[], ir.Kernel],
    predicated: Callable[[], GpuPlan] | None = None,
) -> Code:  # fmt: skip
    """The origin of ``code``, from the IR that ``trace`` gives; ``predicated`` as for ``Code``."""
    return Code(
        device,
        name,
        code.layout,
        launches=len(code.tasks),
        mode=mode,
        trace=trace,
        predicated=predicated,
        **costs_of(code),
    )
