"""Logs followed up to what is committed, as Spark's streams."""
