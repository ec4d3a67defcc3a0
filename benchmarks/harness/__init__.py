"""The parts that all benchmarks share: processes, turns, rows, tables."""
