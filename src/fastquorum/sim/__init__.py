"""Discrete-event simulation of whole quorums: the very same raft/, lane, node/ and storage/ cores over simulated ports.

One seed decides everything: the size of the quorum, its timeouts, every delay, fault and interleaving. The same
seed gives the same trace hash, whatever the kernels and whatever PYTHONHASHSEED. Production code knows nothing of
this package.
"""

from fastquorum.sim.report import Report, Violation
from fastquorum.sim.runs import replay, run, run_cluster, run_seed, sweep
from fastquorum.sim.shrink import shrink

__all__ = ["Report", "Violation", "replay", "run", "run_cluster", "run_seed", "shrink", "sweep"]
