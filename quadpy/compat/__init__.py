"""Other projects' names for what quadpy has: a port changes its import and nothing else."""
