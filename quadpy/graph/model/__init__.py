"""Graphs as data: nodes, their makers, their order, and recordings of calls."""
