"""Decisions about a kernel before it is lowered."""
