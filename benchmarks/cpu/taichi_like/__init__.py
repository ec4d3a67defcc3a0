"""The workloads in the language that quadpy, Taichi and Quadrants share."""
