"""What a replica itself writes into its log, and reads from it."""
