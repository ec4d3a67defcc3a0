"""Builds graphs node by node."""
