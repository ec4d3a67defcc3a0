"""What `benchmarks/cpu.py` measures: workloads, one implementation per language, and the processes that run them."""
