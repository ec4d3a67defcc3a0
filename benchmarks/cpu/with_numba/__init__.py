"""The workloads in numba: parallel loops over NumPy arrays, private copies by hand where threads would collide."""
