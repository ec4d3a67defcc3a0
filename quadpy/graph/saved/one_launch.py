"""Loaded graphs as one launch: what was saved for it, if the calls of a graph are those for which it was made."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from quadpy.core.artifact import AbiLayout, AbiValue, CodeObject
from quadpy.core.formula import BlockValue
from quadpy.core.target import parse_target
from quadpy.errors import DriverError
from quadpy.graph.saved.facts import code_from_json
from quadpy.graph.saved.manifest import SavedFile
from quadpy.jit.fusion.call_code import CallCode, costs_of, unit_of
from quadpy.jit.fusion.fused_calls import FusedCalls
from quadpy.jit.fusion.worth import why_separate
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.runtime.drivers.graph_driver import CopyWork, FillWork

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.drivers.driver import FunctionHandle
    from quadpy.runtime.launch.fusion import Fuse, OneLaunch
    from quadpy.runtime.launch.launch import Call, Origin, Prepared
    from quadpy.runtime.streams.stream import Stream

_COPY: Final = struct.Struct("=QQQ")  # the addresses of both ends, and how many bytes
_FILL: Final = struct.Struct("=QQI")  # the address, how many bytes, and the value
_OTHER: Final = "a saved graph is one launch only alone, with the nodes that it had"


class Move(NamedTuple):
    """A copy or fill of numbers of ``nbytes``, with elements of ``element`` bytes; it stands for the code that does it."""

    kind: str
    nbytes: int
    element: int = 1

    @property
    def letters(self) -> Sequence[str]:
        """For each value of its arguments the possible letters in ``struct``'s language."""
        last = ("Q", "iq") if self.kind == "copy" else {1: "B", 2: "H", 4: "I", 8: "Q"}[self.nbytes]
        return "Q", "iq", *last

    def does(self, other: Move) -> bool:
        """Whether its code does the ``other`` one."""
        return self.kind == other.kind and not (other.nbytes % self.nbytes or self.nbytes % other.element)


class _MoveCode(CallCode):
    """The code of a copy or fill in the one launch, whose arguments have this layout."""

    def __init__(self, move: Move, element: int, layout: AbiLayout) -> None:
        super().__init__(layout, [BlockValue(1)], depth=1, loops=False)
        self._move, self._element = move, element

    def packed(self, arguments: bytes) -> bytes:
        unit = self._move.nbytes
        if self._move.kind == "copy":
            target, source, nbytes = _COPY.unpack(arguments)
            return self._values.pack(target, nbytes // unit, source, nbytes // unit)
        target, nbytes, value = _FILL.unpack(arguments)
        bits = value.to_bytes(self._element, "little") * (unit // self._element)
        return self._values.pack(target, nbytes // unit, int.from_bytes(bits, "little"))


class SavedFusion:
    """One launch of all works of ``file`` on a target: its code, and the calls that it does."""

    def __init__(self, file: SavedFile, target: str) -> None:
        facts = file.manifest["fused"]
        self.wanted: Fuse = "auto" if facts is None or not facts["always"] else True
        self.code: CodeObject | str = "the file has no code for it"
        if facts is None:
            return
        self._levels = [[code if isinstance(code, int) else Move(*code) for code in level] for level in facts["levels"]]
        if target not in facts["kernel"]["code"]:
            self.code = facts["why_not"].get(target, self.code)
            return
        made = facts["kernel"]["code"][target]
        self.code = code_from_json(made, facts["kernel"]["layout"], target, file.entries[made["image"]])
        values = iter(self.code.layout.values)
        letters = [[value[3] for value in kernel["layout"]["values"]] for kernel in file.manifest["kernels"]]
        self._layouts = [
            [_part(values, code.letters if isinstance(code, Move) else letters[code]) for code in level]
            for level in self._levels
        ]

    def codes_of(self, levels: Sequence[Sequence[Call]]) -> list[list[CallCode]] | str:
        """The code of each call; a text if they are not those of the file."""
        if isinstance(self.code, str):
            return self.code
        if [len(level) for level in levels] != [len(level) for level in self._levels]:
            return _OTHER
        found = [
            [self._code_of(origin, code, layout) for (origin, _), code, layout in zip(*each, strict=True)]
            for each in zip(levels, self._levels, self._layouts, strict=True)
        ]
        known = [[code for code in level if code is not None] for level in found]
        return known if known == found else _OTHER

    def _code_of(self, origin: object, code: int | Move, layout: AbiLayout) -> CallCode | None:
        """That of a call of ``origin``, if it is what ``code`` does."""
        if isinstance(code, Move):
            return _MoveCode(code, origin.element, layout) if isinstance(origin, Move) and code.does(origin) else None
        if isinstance(origin, SavedOrigin) and (origin.fusion, origin.number) == (self, code):
            return origin
        return None


def _part(values: Iterator[AbiValue], letters: Sequence[str]) -> AbiLayout:
    """The layout of the next call's ``values``, whose letters these are; each begins at a multiple of 8 bytes or its own."""
    own = list(islice(values, len(letters)))
    if not all(value.code in tuple(letter) for value, letter in zip(own, letters, strict=True)):
        raise ValueError("the arguments of one launch are not those of its kernels")
    return AbiLayout(tuple(replace(value, offset=value.offset - own[0].offset) for value in own), 0)


def join(file: SavedFile, target: str, plans: Sequence[GpuPlan]) -> SavedFusion:
    """Let the kernels of ``file``, whose ``plans`` these are, be one launch together."""
    fusion = SavedFusion(file, target)
    for number, plan in enumerate(plans):
        origin = plan.origin
        assert isinstance(origin, SavedOrigin)
        origin.fusion, origin.number = fusion, number
    return fusion


class SavedOrigin(CallCode):
    """The ``Origin`` of ``code`` of a file: it has what the file has, and compiles nothing.

    repeated  the plan of the same code in predicated form
    one       the same in one launch
    setter    the kernel that sets the conditions of a CUDA graph
    fusion    one launch of all works of its file, in which it is the kernel of this ``number``
    """

    def __init__(
        self, device: Device, code: CodeObject, repeated: GpuPlan | None, one: CodeObject | None, setter: bytes | None
    ) -> None:
        super().__init__(code.layout, **costs_of(code))
        self.repeatable = repeated is not None
        self._device, self._repeated, self.one, self._setter = device, repeated, one, setter
        self.fusion: SavedFusion | None = None
        self.number = 0

    def fuse(self, levels: Sequence[Sequence[Call]], fuse: Fuse) -> OneLaunch | str:
        """See ``Origin.fuse``."""
        found = self._found(levels)
        if isinstance(found, str):
            return found
        code, codes = found
        blocks = [block for level in levels for _, block in level]
        every = list(chain.from_iterable(codes))
        longest = max(each.iterations(each.packed(block)) for each, block in zip(every, blocks, strict=True))
        if why := why_separate(self._device.driver, longest, loops=any(each.loops for each in every), fuse=fuse):
            return why
        try:
            return FusedCalls(self._device, code, codes, blocks, fuse)
        except DriverError as error:  # an older library has no such call
            return error.message

    def of(self, work: FillWork | CopyWork) -> Call | str:
        """See ``Origin.of``."""
        nbytes = work.nbytes if isinstance(work, CopyWork) else work.width * work.element
        if nbytes >= 1 << 31:
            return f"is {nbytes} bytes"
        unit = unit_of(work.target, nbytes, work.source if isinstance(work, CopyWork) else 0)
        if isinstance(work, CopyWork):
            return cast("Origin", Move("copy", unit)), _COPY.pack(work.target, work.source, nbytes)
        return cast("Origin", Move("fill", unit, work.element)), _FILL.pack(work.target, nbytes, work.value)

    @property
    def why_not_alone(self) -> str:
        """See ``Origin.why_not_alone``."""
        found = self.fuse([[(self, bytes(self.layout.size))]], True)
        return found if isinstance(found, str) else found.why_not()

    def predicated(self, call: Prepared, before: Prepared | None, on: Stream) -> Prepared:
        """See ``Origin.predicated``."""
        assert self._repeated is not None
        return self._repeated.predicated(call, before, on)

    def condition_setter(self, *, indirect: bool) -> FunctionHandle:
        """See ``Origin.condition_setter``; the nodes of a saved graph are never indirect."""
        assert self._setter is not None
        arch = str(parse_target(self._device.driver.info.arch))
        module = self._device.modules.load(CodeObject(arch, self._setter, "", AbiLayout((), 0), ()))
        return module.function("quadpy_set_condition")

    def _found(self, levels: Sequence[Sequence[Call]]) -> tuple[CodeObject, list[list[CallCode]]] | str:
        """The code of one launch for these calls, and that of each of them."""
        if self.one is not None and [[origin for origin, _ in level] for level in levels] == [[self]]:
            return self.one, [[self]]
        if self.fusion is None:
            return _OTHER
        code, codes = self.fusion.code, self.fusion.codes_of(levels)
        return code if isinstance(code, str) else codes if isinstance(codes, str) else (code, codes)
