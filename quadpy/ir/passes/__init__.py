"""Passes: functions from a kernel to a kernel.  ``ir.pipeline`` has their order."""
