"""quadpy's own little kernels: the upload of arguments, the conditions of loops."""
