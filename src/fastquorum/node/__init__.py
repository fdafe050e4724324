"""A replica: raft's effects, the lane's outputs and the client APIs, interpreted over ports.

The cores (everything but `node.io`) are sans-IO and run unchanged in the simulator; `node.io` owns sockets, threads and
clocks.
"""
