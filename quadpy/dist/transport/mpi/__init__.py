"""MPI, through mpi4py."""
