"""Tasks as kernels of a GPU."""
