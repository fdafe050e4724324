"""Stored logs as Arrow: where they lie, what each is made of, and their bytes to rows."""
