"""Streams on a part of an AMD GPU: streams with a mask of compute units.

A mask has a bit for each unit that HIP counts: a CU or, from RDNA on, a WGP, whose two CUs HIP switches on together.  The kernel
driver (``mqd_symmetrically_map_cu_mask`` in Linux) numbers units like this: consecutive ones go round the XCCs, then round the
shader engines of each, then round their shader arrays, and only then to the next unit of an array.  So consecutive units
are spread evenly.  An XCC without any unit never finishes its share of a launch.
"""

from __future__ import annotations

import ctypes
import os
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
        self.groups = named("hipGetDeviceProperties", Parts._groups, self)
        self.create = named("hipExtStreamCreateWithCUMask", Parts._create, self)

    def _groups(self, ordinal: int) -> tuple[Any, ...]:
        status, facts = self._hip.hipGetDeviceProperties(ordinal)
        if status != self._ok:
            return (status,)
        units, group = facts.multiProcessorCount, self._xccs(ordinal, facts.gcnArchName)
        if _counts_halves_of_wgps(facts.gcnArchName):
            group *= 2
        whole, rest = divmod(units, group)
        return self._ok, [*[group] * (whole - 1), group + rest] if whole else [units]

    def _xccs(self, ordinal: int, arch: str) -> int:
        kind = getattr(self._hip.hipDeviceAttribute_t, "hipDeviceAttributeNumberOfXccs", None)
        status, found = (None, 0) if kind is None else self._hip.hipDeviceGetAttribute(kind, ordinal)
        if status == self._ok and found:
            return int(found)
        return _MOST_XCCS if arch.startswith(("gfx94", "gfx95")) else 1

    def _create(
        self, _ordinal: int, _flags: int, _priority: int, _groups: object, units: Sequence[range]
    ) -> tuple[Any, ...]:
        """HIP has no flags and no priority for such streams."""
        chosen = sum(1 << unit for group in units for unit in group)
        words = -(-chosen.bit_length() // 32)
        mask = (ctypes.c_uint32 * words)(*(chosen >> 32 * word & 0xFFFFFFFF for word in range(words)))
        return tuple(self._hip.hipExtStreamCreateWithCUMask(words, mask))


def _counts_halves_of_wgps(arch: str) -> bool:
    """Whether HIP counts the CUs of WGPs one by one, as it does in CU mode; the driver refuses half a WGP."""
    in_cu_mode = os.environ.get("GPU_ENABLE_WGP_MODE", "1").lower() in ("0", "false")
    return not arch.startswith("gfx9") and (in_cu_mode or arch.startswith("gfx125"))
