"""Ranks that torchrun starts: torch's store and its gloo connect them."""
