"""Which configurations hold, for a node or a topic, and how that is told."""
