"""Turns calls into nodes of a graph."""
