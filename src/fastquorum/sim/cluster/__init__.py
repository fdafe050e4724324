"""A cluster on a simulated quorum: brokers and an administrator that talk to the real controllers over the simulated
network, faults of their own, and the promises C1 to C10 and C15 to C17 checked on everything that is committed."""
