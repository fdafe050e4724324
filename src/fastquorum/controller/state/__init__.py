"""The state of the active controller: its image with all that it has appended, broker sessions, and derived facts."""
