"""One device: its parts, their lifetimes, and which devices are open."""
