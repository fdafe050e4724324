"""A cluster on a simulated quorum: brokers and an administrator that talk to the real controllers over the simulated
network, with their own faults. The promises C1 to C10 and C15 to C17 are checked on everything that is committed."""
