"""CUDA's contexts, which HIP does not have.

A CUDA thread selects a context, not a device.  quadpy uses each device's primary context, as torch, CuPy and the CUDA
runtime do, so that they can exchange memory and streams.
"""

from __future__ import annotations

from typing import Any, Final

from quadpy.runtime.drivers.vendor_calls import Call, named

_SPIN: Final = 1  # CU_CTX_SCHED_SPIN: waiting threads poll; other policies cost tens of microseconds per wait


class Contexts:
    """The primary context of each device, retained at its first selection and never released.

    select         ordinal -> nothing: makes that device's context current for the calling thread
    stream_device  stream -> the ordinal of its device, for the streams of any library
    """

    select: Call
    stream_device: Call

    def __init__(self, cuda: Any) -> None:
        self._cuda, self._ok = cuda, cuda.CUresult.CUDA_SUCCESS
        self._retained: dict[int, Any] = {}
        self.select = named("cuCtxSetCurrent", Contexts._select, self)
        self.stream_device = named("cuStreamGetCtx", Contexts._stream_device, self)

    def _select(self, ordinal: int) -> tuple[Any, ...]:
        context = self._retained.get(ordinal)
        if context is None:  # two threads may both retain it: they get the same context
            status, context = self._retain(ordinal)
            if status != self._ok:
                return (status,)
            self._retained[ordinal] = context
        return tuple(self._cuda.cuCtxSetCurrent(context))

    def selection(self, ordinal: int) -> tuple[str, int]:
        """The call that selects the device, and its argument, the context."""
        if ordinal not in self._retained:  # another table of calls selected the device
            self._select(ordinal)
        return "cuCtxSetCurrent", int(self._retained[ordinal])

    def _retain(self, ordinal: int) -> tuple[Any, ...]:
        cuda = self._cuda
        status, device = cuda.cuDeviceGet(ordinal)
        if status != self._ok:
            return status, None
        status, _, active = cuda.cuDevicePrimaryCtxGetState(device)
        if status == self._ok and not active:  # otherwise, another library has set the policy
            cuda.cuDevicePrimaryCtxSetFlags(device, _SPIN)
        return tuple(cuda.cuDevicePrimaryCtxRetain(device))

    def _stream_device(self, stream: int) -> tuple[Any, ...]:
        cuda = self._cuda
        status, context = cuda.cuStreamGetCtx(stream)
        if status != self._ok:
            return (status,)
        (status,) = cuda.cuCtxPushCurrent(context)
        if status != self._ok:
            return (status,)
        status, device = cuda.cuCtxGetDevice()
        cuda.cuCtxPopCurrent()
        return (status, int(device)) if status == self._ok else (status,)
