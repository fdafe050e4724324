"""Topics and partitions: made, given more, elected for, moved, and who is in sync."""
