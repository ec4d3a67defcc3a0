"""NCCL and RCCL: messages between GPUs, on their streams."""
