"""quadpy on the CPU beside Taichi, Quadrants and numba."""
