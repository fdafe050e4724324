"""The native lane; `fastquorum.kernels.lane` explains it."""

from fastquorum.kernels.native._lane import Lane

__all__ = ["Lane"]
