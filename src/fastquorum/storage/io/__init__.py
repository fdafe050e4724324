"""What of the storage reaches the operating system: files, locks, LMDB."""
