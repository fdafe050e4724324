"""The effective configurations of a node or a topic, and their descriptions."""
