"""The log directory, the quorum state, and their recovery; Kafka's disk formats.

The core (everything but `storage.io`) speaks to the ports of `storage.ports` and runs unchanged in the simulator.
"""
