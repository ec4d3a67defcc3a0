"""Tasks as functions of the CPU."""
