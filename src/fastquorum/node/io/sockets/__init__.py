"""TCP: names looked up, connections made and taken in, bytes moved."""
