"""The levels of a node's loggers. Our nodes have none, so a change gets the answer of a Kafka controller for an unknown
logger. Source: KIP-412; Kafka `RuntimeLoggerManager`.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from fastquorum.controller.refusals import TopicFault
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode

INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_SET, _DELETE = 0, 1


def check_levels(node_id: NodeId, name: str, changes: Iterable[Any]) -> None:
    """Refuse (TopicFault) each change of a level that IncrementalAlterConfigs wants of node `name`'s loggers."""
    if INTEGER.fullmatch(name) is None:
        raise TopicFault(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name[:100]}")
    if int(name) != node_id:
        raise TopicFault(ErrorCode.INVALID_REQUEST, f"Unexpected node id: this is node {node_id}, ask {name} itself")
    for each in changes:
        if each.config_operation not in (_SET, _DELETE):
            text = f"Operation {each.config_operation} is not supported for loggers: a level is set, or unset."
            raise TopicFault(ErrorCode.INVALID_REQUEST, text)
        raise TopicFault(ErrorCode.INVALID_CONFIG, f"Logger {each.name} does not exist!")
