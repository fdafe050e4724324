"""Where a cluster's replicas lie, what the loss of a broker would do, and which moves would repair it.

Plain functions over arrays, for a million partitions: no clock, no chance, no image and no requests. What makes a
`Layout` of an image or of a table, and what sends the moves to a controller, is the caller's business.
"""

from fastquorum.controller.planning.layout import NOBODY, Brokers, Layout, spread
from fastquorum.controller.planning.losses import Loss, loss_of_each
from fastquorum.controller.planning.moves import Limits, Plan, Reason, plan_moves

__all__ = ["NOBODY", "Brokers", "Layout", "Limits", "Loss", "Plan", "Reason", "loss_of_each", "plan_moves", "spread"]
