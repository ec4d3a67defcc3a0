"""Streams on a part of an AMD GPU: streams with a mask of compute units.

The kernel driver (``mqd_symmetrically_map_cu_mask`` in Linux) numbers the bits of a mask like this: consecutive bits go round
the XCCs, then round the shader engines of each, then round their shader arrays, and only then to the next unit of an array.
So consecutive units are spread evenly.  An XCC without any unit never finishes its share of a launch, and from RDNA on the
two CUs of a WGP must be both on or both off.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

from quadpy.runtime.drivers.vendor_calls import Call, named

_MOST_XCCS: Final = 8
"""Of a device that does not say how many it has: as many consecutive units are in each of fewer XCCs, too."""


class Parts:
    """See ``GpuApi``.

    groups  ordinal -> how many units each group has: one in each XCC, whole WGPs
    create  ordinal, flags, priority, numbers of groups, their units -> stream
    """

    groups: Call
    create: Call

    def __init__(self, hip: Any) -> None:
        self._hip, self._ok = hip, hip.hipError_t.hipSuccess
        self._bits: dict[int, int] = {}
        self.groups = named("hipGetDeviceProperties", Parts._groups, self)
        self.create = named("hipExtStreamCreateWithCUMask", Parts._create, self)

    def _groups(self, ordinal: int) -> tuple[Any, ...]:
        status, facts = self._hip.hipGetDeviceProperties(ordinal)
        if status != self._ok:
            return (status,)
        units = facts.multiProcessorCount
        cus, xccs = self._attribute("PhysicalMultiProcessorCount", ordinal), self._attribute("NumberOfXccs", ordinal)
        xccs = xccs or (_MOST_XCCS if facts.gcnArchName.startswith(("gfx94", "gfx95")) else 1)
        paired = not facts.gcnArchName.startswith("gfx9")
        # HIP counts WGPs as units unless it is told to run in CU mode.
        self._bits[ordinal] = max(1, cus // units) if cus else 1 + paired
        group = max(1, (1 + paired) // self._bits[ordinal]) * xccs
        whole, rest = divmod(units, group)
        return self._ok, [*[group] * (whole - 1), group + rest] if whole else [units]

    def _attribute(self, name: str, ordinal: int) -> int:
        """An attribute of the device; 0 if the library does not know it."""
        kind = getattr(self._hip.hipDeviceAttribute_t, f"hipDeviceAttribute{name}", None)
        if kind is None:
            return 0
        status, value = self._hip.hipDeviceGetAttribute(kind, ordinal)
        return int(value) if status == self._ok else 0

    def _create(
        self, ordinal: int, _flags: int, _priority: int, _groups: object, units: Sequence[range]
    ) -> tuple[Any, ...]:
        """HIP has no flags and no priority for such streams."""
        bits = self._bits[ordinal]
        chosen = sum(((1 << bits) - 1) << bits * unit for group in units for unit in group)
        words = -(-chosen.bit_length() // 32)
        mask = (ctypes.c_uint32 * words)(*(chosen >> 32 * word & 0xFFFFFFFF for word in range(words)))
        return tuple(self._hip.hipExtStreamCreateWithCUMask(words, mask))
