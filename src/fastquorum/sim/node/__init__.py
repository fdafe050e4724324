"""One simulated node: its process, its threads, and what reaches and leaves it."""
