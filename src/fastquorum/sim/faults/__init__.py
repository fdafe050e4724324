"""The faults of a simulated world, and its strangers."""
