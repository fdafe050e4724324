"""One log: its segments, mark, epochs and snapshots; recovered, appended to, read, cut off."""
