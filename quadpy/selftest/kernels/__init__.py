"""The kernels of the checks, as users write them."""
