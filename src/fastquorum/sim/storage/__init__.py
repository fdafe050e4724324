"""What outlives a simulated process, or stores for it: disks, the thread that syncs, the quorum state, logs."""
