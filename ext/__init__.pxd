"""To Cython, this directory is the package fastquorum.kernels.native: its modules cimport each other by that name."""
