"""What a node is started with, and how that is written in arguments, files and variables."""
