"""A node, and whatever its settings want to have watching over it. In place of `node.io.starting.start_node`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from fastquorum.closing import end_all
from fastquorum.node.io import starting
from fastquorum.node.io.handles import Companion
from fastquorum.node.io.observing import Observer
from fastquorum.node.io.running import RunningNode
from fastquorum.node.io.sockets.listening import bound_endpoint, listen
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.types import Endpoint

if TYPE_CHECKING:
    from fastquorum.observe.recorder import Recorder


class Exporter(Companion, Protocol):
    """Tells a node's metrics, once there is one."""

    def watch(self, recorder: Recorder) -> None: ...


class _Exporters:
    """All of them as one companion."""

    def __init__(self, exporters: Sequence[Exporter]) -> None:
        self._exporters = exporters

    def close(self) -> None:
        end_all(each.close for each in self._exporters)

    def abandon_in_child(self) -> None:
        for each in self._exporters:
            each.abandon_in_child()


def start_node(settings: NodeSettings, observer: Observer) -> RunningNode:
    """Start a node like `node.io.starting.start_node`, with its exporters. A taken port or a missing extra is a
    ConfigError before the node's directory is touched; probes are answered while its log is read."""
    if settings.metrics is None and settings.otel is None:
        return starting.start_node(settings, observer)
    # Imported here, as most nodes are not watched like this.
    from fastquorum.observe.recorder import Recorder

    with ExitStack() as failing:
        exporters: list[Exporter] = []
        endpoint: Endpoint | None = None
        if settings.otel is not None:
            from fastquorum.observe.otel import Pusher

            exporters.append(Pusher(settings.otel, observer.on_notice))
            failing.callback(exporters[-1].close)
        if settings.metrics is not None:
            from fastquorum.observe.serving import MetricsServer

            listening = listen(settings.metrics, "metrics.listener")
            endpoint = bound_endpoint(listening, settings.metrics)._replace(name="")
            server = MetricsServer(listening)
            failing.callback(server.close)
            server.start()
            exporters.append(server)
        node = starting.start_node(settings, observer)
        failing.pop_all()  # from here on the node closes them
    node.metrics_endpoint = endpoint
    node.accompany(_Exporters(exporters))
    recorder = Recorder(node)
    for each in exporters:
        each.watch(recorder)
    return node
