"""What a replica does as leader, follower, candidate, prospective, resigned, or without a leader."""
