"""Functions that are recorded at their first call and replayed from then on."""
