"""The storage of a simulated process: disks, the flusher's thread, the quorum state, logs."""
