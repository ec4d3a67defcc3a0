"""Kernels as Python code, which runs line by line under a debugger."""
