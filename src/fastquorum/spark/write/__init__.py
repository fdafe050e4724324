"""Rows appended through a running quorum, from batches and from streams."""
