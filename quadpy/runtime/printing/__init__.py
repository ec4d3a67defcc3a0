"""What kernels print: the memory that launches report to, and the text that the host makes of it."""
