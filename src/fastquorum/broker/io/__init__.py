"""The system side of a member: its thread, its clock, and what an embedding program holds of it."""
