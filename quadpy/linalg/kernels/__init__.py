"""Kernels of ``qp.linalg``, written as users write theirs."""
