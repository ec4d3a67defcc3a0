"""Output of kernels: the memory that launches write records to, and the text that the host makes of them."""
