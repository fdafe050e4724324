"""What no microbenchmark shows: a quorum's life as its users have it, each figure beside its yardstick."""
