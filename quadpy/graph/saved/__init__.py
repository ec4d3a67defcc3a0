"""Graphs and kernels in files, which run without the compiler."""
