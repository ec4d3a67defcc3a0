"""What `gpu.py` and `instructions.py` run: workloads, kernels, peers, processes, report."""
