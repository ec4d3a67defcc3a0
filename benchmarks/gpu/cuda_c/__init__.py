"""Hand-written CUDA C: kernels in `*.cu`, a C interface over `ctypes`."""
