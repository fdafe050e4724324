"""Starting a node for a program that embeds it, for both twins."""

from fastquorum.node.io import handles
from fastquorum.node.io.logged import Logged
from fastquorum.node.io.observing import Observer
from fastquorum.node.io.running import RunningNode
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.observe.starting import start_node
from fastquorum.opening import check_interpreter


def start_logged(settings: NodeSettings, observer: Observer) -> RunningNode:
    """Start a node like `observe.starting.start_node`, and log its events to `logging.getLogger("fastquorum")`."""
    check_interpreter()
    handles.end_left()
    logged = Logged(observer, settings.node_id)
    node = start_node(settings, logged)
    logged.started(node.advertised, node.identity.cluster_id, node.identity.node_id)
    return node
