"""One simulated node: its process, its threads, and its frames in and out."""
