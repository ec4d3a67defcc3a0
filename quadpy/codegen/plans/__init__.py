"""What is decided about a kernel before any of it is lowered."""
