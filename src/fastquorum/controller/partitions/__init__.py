"""Topics and partitions: creation, growth, elections, reassignments and ISRs."""
