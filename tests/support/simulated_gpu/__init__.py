"""A simulated device for tests, which finds races."""
