"""The CPU: loading machine code into this process, and the threads that run it."""
