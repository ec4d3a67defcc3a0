"""Where language, code generation and runtime meet: kernels that Python can call."""
