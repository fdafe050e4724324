"""The outside of a replica: sockets, threads, clocks, files of settings. Everything that the cores of `node/` may not
touch.

One thread a replica (`reactor`), in which all of raft/ and most of the lane runs; callers append from their own threads
under the lane lock. `running` puts a data directory, a replica and its thread together for the public API.
"""
