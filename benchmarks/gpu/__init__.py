"""quadpy on a GPU beside CUDA C, Quadrants, numba-cuda, Triton and torch."""
