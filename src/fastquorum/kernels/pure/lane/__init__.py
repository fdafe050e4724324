"""The pure lane: the steady state's rules in plain Python, the twin of `ext/core/lane`."""

from fastquorum.kernels.pure.lane.lane import Lane

__all__ = ["Lane"]
