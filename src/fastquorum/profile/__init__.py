"""Where the processor's time goes, and what is waited for, in processes that run nodes: by py-spy, perf and /proc.

Each tool sees a part: py-spy threads that run Python, with their native frames; perf the node's own native threads,
which never run Python; /proc every thread's time on and off the processor. Where one is missing, the report says what
that leaves out. Knows process ids, nothing of quorums and loads.
"""
