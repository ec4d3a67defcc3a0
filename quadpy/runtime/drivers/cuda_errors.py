"""What CUDA's errors mean.  Owns: CAUSES, FATAL, unusable.  Imports: the standard library only."""

from __future__ import annotations

from typing import Final

__all__ = ["CAUSES", "FATAL", "unusable"]

_LOST: Final = "the device cannot be used again in this process"

FATAL: Final = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "a kernel that ran earlier touched memory that is not there: an index out of bounds, "
    "or an array that was freed",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "a kernel that ran earlier touched memory that is not aligned to its element's size",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "a kernel that ran earlier took an address for one of another kind of memory",
    "CUDA_ERROR_INVALID_PC": "a kernel that ran earlier jumped to where no code is",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "a kernel that ran earlier met an instruction that the device does not have",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "a kernel that ran earlier needed more stack than a thread has",
    "CUDA_ERROR_LAUNCH_FAILED": "a kernel that ran earlier failed on the device",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "a kernel ran longer than the system permits on a device that shows a screen",
    "CUDA_ERROR_ASSERT": "an assertion failed in a kernel that ran earlier",
    "CUDA_ERROR_TENSOR_MEMORY_LEAK": "a kernel that ran earlier did not give tensor memory back",
    "CUDA_ERROR_CONTAINED": "the device met a fault of its own and contained it",
    "CUDA_ERROR_ECC_UNCORRECTABLE": "the device's memory has an error that it cannot correct: see nvidia-smi -q",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE": "the link between the devices has an error that it cannot correct",
    "CUDA_ERROR_EXTERNAL_DEVICE": "another device that the kernel used has failed",
    "CUDA_ERROR_MPS_CLIENT_TERMINATED": "a fault in another process ended this one's use of the shared device",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "another library in this process has reset the device",
}

_REFUSED: Final = {
    "CUDA_ERROR_INVALID_VALUE": "an argument is out of range; of a launch, also more threads or shared memory than a "
    "block can have",
    "CUDA_ERROR_INVALID_HANDLE": "the stream or event belongs to another context or device, or was destroyed",
    "CUDA_ERROR_INVALID_CONTEXT": "another library in this process took the device's context away",
    "CUDA_ERROR_INVALID_IMAGE": "the image is neither PTX nor machine code of NVIDIA's",
    "CUDA_ERROR_INVALID_PTX": "the driver's assembler refuses the PTX",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the driver is too old for this PTX: install a newer driver, "
    "or compile for an older target",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the code was compiled for another GPU: compile it for this device",
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": "the driver's PTX compiler, libnvidia-ptxjitcompiler.so.1, is missing: "
    "in a container, ask for the capability 'compute'",
    "CUDA_ERROR_JIT_COMPILATION_DISABLED": "CUDA_DISABLE_PTX_JIT is set: unset it",
    "CUDA_ERROR_NOT_FOUND": "the module has no function of this name",
    "CUDA_ERROR_NOT_SUPPORTED": "this driver, or this device, cannot do it",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the kernel needs more registers or shared memory than a block can have",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "another process has the device for itself: see nvidia-smi",
}

CAUSES: Final = _REFUSED | {name: f"{cause}; {_LOST}" for name, cause in FATAL.items()}

_UNUSABLE: Final = {
    "CUDA_ERROR_NO_DEVICE": "see that nvidia-smi shows a device, and that CUDA_VISIBLE_DEVICES hides none",
    "CUDA_ERROR_STUB_LIBRARY": "the toolkit's stub of libcuda is found before the driver's: mend LD_LIBRARY_PATH",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the driver was updated while its kernel module ran: start the machine anew",
    "CUDA_ERROR_SYSTEM_NOT_READY": "start nvidia-fabricmanager",
}
_UNUSABLE_ELSE: Final = "see that the nvidia kernel module is loaded, and that /dev/nvidia* may be opened"
_NO_LIBRARY: Final = "install NVIDIA's driver, which brings libcuda.so.1"


def unusable(said: str) -> str:
    """What to do where CUDA does not start: ``said`` is its error's name, or why its library was not loaded."""
    return _UNUSABLE.get(said, _UNUSABLE_ELSE) if said.startswith("CUDA_ERROR_") else _NO_LIBRARY
