"""The shell around a replica's lane: callers' appends and barriers, and who has what in the log."""
