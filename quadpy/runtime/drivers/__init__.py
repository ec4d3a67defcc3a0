"""Drivers: one for GPUs over a name table per vendor, the CPU, and a recording one for tests."""
