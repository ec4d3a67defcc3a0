"""Other projects' names for quadpy's features: a port changes only its import."""
