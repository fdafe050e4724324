"""The placement of a cluster's replicas, the effect of a lost broker, and the moves that repair it.

Plain functions over arrays, for a million partitions: no clock, no random source, no image and no requests. The caller
makes a `Layout` of an image or of a table, and sends the moves to a controller.
"""

from fastquorum.controller.planning.layout import NOBODY, Brokers, Layout, spread
from fastquorum.controller.planning.losses import Loss, loss_of_each
from fastquorum.controller.planning.moves import Limits, Plan, Reason, plan_moves

__all__ = ["NOBODY", "Brokers", "Layout", "Limits", "Loss", "Plan", "Reason", "loss_of_each", "plan_moves", "spread"]
