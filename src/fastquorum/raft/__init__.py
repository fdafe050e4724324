"""Consensus, sans-IO: events in, effects out (KIP-595, KIP-996 pre-vote, KIP-853 directory ids).

No sockets, files, clock, threads, randomness but an injected generator's numbers; no record bytes: offsets, epochs,
sizes and opaque spans only.
"""
