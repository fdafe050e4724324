"""What a node's controller counts."""

from dataclasses import dataclass


@dataclass(slots=True)
class ControllerTally:
    """Counted since the node was started."""

    errors: int = 0
    """Requests that came to nothing by a fault of ours."""
    timed_out_heartbeats: int = 0
    new_leaders: int = 0
