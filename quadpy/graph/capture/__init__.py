"""Calls that become a graph."""
