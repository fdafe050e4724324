"""The controller: the pure state machine that the quorum replicates. Metadata records in, an image out.

It does not know how records get committed, and uses no clock, disk, socket, thread or random source. Source: KIP-631.
"""
