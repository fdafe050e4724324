"""The system refuses what a node asks of it: descriptors, room, memory, threads; or its disk fails."""
