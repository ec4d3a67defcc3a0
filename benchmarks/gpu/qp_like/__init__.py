"""The kernels in the language that quadpy and Quadrants share: one source for both."""
