"""The kernels of algorithms, in the kernel language."""
