"""What the native shell does, as the rest of a node sees it."""
