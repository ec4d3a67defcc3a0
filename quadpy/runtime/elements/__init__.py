"""Elements of arrays: their types, and vectors and matrices as values on the host."""
