"""The likely causes of CUDA's errors."""

from __future__ import annotations

from typing import Final

_LOST: Final = "the device cannot be used again in this process"

FATAL: Final = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "an earlier kernel accessed memory that does not exist: an index out of bounds, "
    "or an array that was freed",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "an earlier kernel accessed memory that is not aligned to the size of its element",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "an earlier kernel used an address in the wrong address space",
    "CUDA_ERROR_INVALID_PC": "an earlier kernel jumped to an address without code",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "an earlier kernel used an instruction that the device does not have",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "an earlier kernel needed more stack than a thread has",
    "CUDA_ERROR_LAUNCH_FAILED": "an earlier kernel failed on the device",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "a kernel ran longer than the system permits on a device with a display",
    "CUDA_ERROR_ASSERT": "an assertion failed in an earlier kernel",
    "CUDA_ERROR_TENSOR_MEMORY_LEAK": "an earlier kernel did not free its tensor memory",
    "CUDA_ERROR_CONTAINED": "the device had a hardware fault and contained it",
    "CUDA_ERROR_ECC_UNCORRECTABLE": "the device's memory has an uncorrectable error: see nvidia-smi -q",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE": "the link between the devices has an uncorrectable error",
    "CUDA_ERROR_EXTERNAL_DEVICE": "another device that the kernel used has failed",
    "CUDA_ERROR_MPS_CLIENT_TERMINATED": "a fault in another process ended this process's use of the shared device",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "another library in this process reset the device",
}

_REFUSED: Final = {
    "CUDA_ERROR_INVALID_VALUE": "an argument is out of range; in a launch, also more threads or shared memory than a "
    "block can have",
    "CUDA_ERROR_INVALID_HANDLE": "the stream or event belongs to another context or device, or was destroyed",
    "CUDA_ERROR_INVALID_CONTEXT": "another library in this process removed the device's context",
    "CUDA_ERROR_INVALID_IMAGE": "the image is neither PTX nor NVIDIA machine code",
    "CUDA_ERROR_INVALID_PTX": "the driver's assembler refuses the PTX",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the driver is too old for this PTX: install a newer driver, "
    "or compile for an older target",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the code was compiled for another GPU: compile it for this device",
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": "the driver's PTX compiler, libnvidia-ptxjitcompiler.so.1, is missing: "
    "in a container, request the capability 'compute'",
    "CUDA_ERROR_JIT_COMPILATION_DISABLED": "CUDA_DISABLE_PTX_JIT is set: unset it",
    "CUDA_ERROR_NOT_FOUND": "the module has no function of this name",
    "CUDA_ERROR_NOT_SUPPORTED": "this driver, or this device, does not support it",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the kernel needs more registers or shared memory than a block can have",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "another process uses the device exclusively: see nvidia-smi",
}

CAUSES: Final = _REFUSED | {name: f"{cause}; {_LOST}" for name, cause in FATAL.items()}

_REMEDIES: Final = {
    "CUDA_ERROR_NO_DEVICE": "check that nvidia-smi shows a device, and that CUDA_VISIBLE_DEVICES does not hide it",
    "CUDA_ERROR_STUB_LIBRARY": "the toolkit's stub of libcuda is found before the driver's: correct LD_LIBRARY_PATH",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the driver was updated while its kernel module was loaded: restart the machine",
    "CUDA_ERROR_SYSTEM_NOT_READY": "start nvidia-fabricmanager",
}
_DEFAULT_REMEDY: Final = "check that the nvidia kernel module is loaded, and that /dev/nvidia* can be opened"
_NO_LIBRARY: Final = "install NVIDIA's driver, which contains libcuda.so.1"


def remedy(reason: str) -> str:
    """What to do if CUDA does not start; ``reason`` is the error's name, or why the library was not loaded."""
    return _REMEDIES.get(reason, _DEFAULT_REMEDY) if reason.startswith("CUDA_ERROR_") else _NO_LIBRARY
