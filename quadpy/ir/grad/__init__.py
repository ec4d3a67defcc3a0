"""Derivatives: from a kernel to the kernel of its tangents (forward mode) or of its adjoints (reverse mode).

Both take a kernel as traced, before ``ir.pipeline.TASK_PASSES``.  A derivative is right, or an error names the line that
prevents it.
"""
