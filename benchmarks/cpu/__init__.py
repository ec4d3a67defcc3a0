"""quadpy on the CPU compared with Taichi, Quadrants and numba."""
