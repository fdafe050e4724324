"""Internal: shared by the other modules through cimport. Offers nothing to Python."""
