"""What the active controller knows: its image with all that it has appended, who is alive, and what follows."""
