"""Ways to run a graph: the driver, the host, one launch, arguments in memory, loops on the host."""
