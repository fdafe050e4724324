"""Requests the metrics of a node for all exporters: one request is under way at a time, and its response goes to all.

Any thread may ask; the replica's thread answers, when it comes to it. A replica that hangs is asked once, and how long
it has been silent is known.
"""

import threading
from collections.abc import Callable
from typing import Final

from fastquorum.node.io.clock import now_us
from fastquorum.node.io.running import RunningNode
from fastquorum.node.metrics import NodeMetrics
from fastquorum.observe.families import NodeView
from fastquorum.observe.health import readiness
from fastquorum.observe.process import process_now
from fastquorum.observe.stages import counted
from fastquorum.observe.window import RecentWindow
from fastquorum.types import Micros

OnMetrics = Callable[[NodeMetrics], None]
_NEVER: Final = -1


class Recorder:
    """Collects the metrics of one node for all exporters."""

    def __init__(self, node: RunningNode) -> None:
        self.node = node
        self._guard = threading.Lock()
        self._waiting: list[OnMetrics] = []
        self._requested_us: Micros = _NEVER
        self._window = RecentWindow()

    def ask(self, on_metrics: OnMetrics) -> None:
        """Request metrics. `on_metrics` is called on the replica's thread, must not block, and may never be called."""
        with self._guard:
            self._waiting.append(on_metrics)
            if self._requested_us >= 0:
                return
            self._requested_us = now_us()
        self.node.measure(self._on_measured)

    def look(self, timeout_s: float) -> NodeView | None:
        """Request metrics and wait; None if there is no response in time. On any thread but the replica's."""
        answered = threading.Event()
        answers: list[NodeMetrics] = []

        def on_metrics(metrics: NodeMetrics) -> None:
            answers.append(metrics)
            answered.set()

        self.ask(on_metrics)
        if answered.wait(timeout_s):
            return self.view(answers[0])
        self.forget(on_metrics)
        return None

    @property
    def silent_us(self) -> Micros:
        """Age of the pending request in microseconds; 0 if there is none."""
        requested_us = self._requested_us
        return now_us() - requested_us if requested_us >= 0 else 0

    def forget(self, on_metrics: OnMetrics) -> None:
        """Drop a callback that is no longer wanted."""
        with self._guard:
            if on_metrics in self._waiting:
                self._waiting.remove(on_metrics)

    def view(self, metrics: NodeMetrics) -> NodeView:
        """Return all that an exporter needs. On any thread but the replica's."""
        stages = counted(self.node.stage_histograms())
        with self._guard:
            recent = self._window.add(metrics, stages)
        is_ready = readiness(self.node, metrics, 0).is_good
        return NodeView(metrics, stages, recent, process_now(), is_ready)

    def _on_measured(self, metrics: NodeMetrics) -> None:
        with self._guard:
            waiting, self._waiting = self._waiting, []
            self._requested_us = _NEVER
        for each in waiting:
            each(metrics)
