"""The thread pool's native code, as LLVM IR text; it imports nothing outside the standard library."""
