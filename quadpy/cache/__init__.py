"""The kernel cache on disk."""
