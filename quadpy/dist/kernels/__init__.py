"""Kernels of distributed arrays, in the kernel language."""
