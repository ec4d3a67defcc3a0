"""Memory: the allocators, the storage of arrays, copies of host memory, memory of other libraries."""
