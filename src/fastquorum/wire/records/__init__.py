"""The records of the metadata log and of the quorum's control batches, declared as data."""
