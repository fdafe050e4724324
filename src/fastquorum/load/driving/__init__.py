"""The generator's loop, what it appends and when, and what it drives."""
