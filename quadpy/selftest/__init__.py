"""``quadpy selftest``: proves on this machine what quadpy promises, and measures what its launches cost."""
