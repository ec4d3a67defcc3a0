"""Arrays and fields on the host and on devices, and arrays of other libraries."""
