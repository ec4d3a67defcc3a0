"""Where device memory comes from: quadpy's cache over the plain allocator, or the driver's pool."""
