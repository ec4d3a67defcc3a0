"""How ranks move data and agree: one protocol, and an implementation for each engine."""
