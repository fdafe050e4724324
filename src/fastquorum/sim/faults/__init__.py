"""What goes wrong in a simulated world, and who is no part of it."""
