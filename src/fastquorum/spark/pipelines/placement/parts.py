"""The result of `placement`, part by part."""

from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.spark.pipelines.packing import Packing
from fastquorum.spark.pipelines.placement.rows import BROKERS, LOSSES, MOVES


class Placement(NamedTuple):
    """Placement of one cluster."""

    brokers: pa.Table
    """A row for each broker, by id."""
    losses: pa.Table
    """A row for each broker, then for each rack."""
    moves: pa.Table
    """A row for each partition that is to change."""
    summary: dict[str, Any]
    """Summary for JSON. A cluster that could not be looked at has `unchecked`, why."""


PACKING: Final = Packing(Placement, {"brokers": BROKERS, "losses": LOSSES, "moves": MOVES})
