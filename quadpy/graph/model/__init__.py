"""Graphs as data: nodes, their makers and their order."""
