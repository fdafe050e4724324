"""`audit-invariants`: does a metadata log keep the promises that a quorum and its controller make?

Each part is a function of its own over a table of the data source, of one log or one cluster: `audit_offsets` of
`batches` and `checkpoints`, `audit_majority` of what `audit_replicas` reads, `audit_log` of the facts of `records`,
`base` and `replay`, `audit_leaders` of `control`, `audit_snapshots` of `snapshots`; `merged` makes one of what several
replicas share. Kafka's own behaviour is what is legal. Needs pyarrow and numpy, and no JVM.
"""
