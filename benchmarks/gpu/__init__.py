"""quadpy on a GPU compared with CUDA C, Quadrants, numba-cuda, Triton and torch."""
