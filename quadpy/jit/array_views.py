"""Arrays of any library as launches see them; without the types of the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from quadpy.core.records import RecordType
from quadpy.hostmath.struct_ndarray import describe_struct_array
from quadpy.runtime.arrays.foreign_device import describe_device_array, is_on_gpu
from quadpy.runtime.arrays.foreign_host import describe_host_array
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.view import ArrayView
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.devices import current_device


def view_of(given: Any, element_in: Callable[[Any], tuple[int, ...]], record: RecordType | None = None) -> ArrayView:
    """``given`` as a launch sees it.

    ``element_in`` gives the shape of an element of another library's array, whose last axes these are; ``record`` is the
    struct of its elements, if that is known.

    Raises:
        ArgumentError: it is not an array, or one that cannot be read.
        DeviceError: it is on another device.
    """
    if isinstance(given, (NDArray, OrderedNDArray)) or hasattr(given, "__quadpy_view__"):
        return given  # type: ignore[no-any-return]  # it is its own view
    if current_config().arch != "cpu" and is_on_gpu(given):
        return describe_device_array(given, current_device(), element_in(given))
    if isinstance(given, np.ndarray) and given.dtype.names is not None:
        return describe_struct_array(given, record)
    return describe_host_array(given, element_in(given))
