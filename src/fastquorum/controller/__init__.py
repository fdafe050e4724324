"""The controller: the state machine the quorum exists for, pure. Metadata records in, an image out.

It does not know how records get committed, and touches no clock, disk, socket, thread or chance. Source: KIP-631.
"""
