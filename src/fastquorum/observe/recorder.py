"""Asks a node for its numbers, on behalf of whoever wants them: one question under way at a time, answered to all.

Any thread may ask; the replica's thread answers, when it comes to it. A replica that hangs is asked once, and how long
it has been silent is known.
"""

import threading
from collections.abc import Callable
from typing import Final

from fastquorum.node.io.clock import now_us
from fastquorum.node.io.running import RunningNode
from fastquorum.node.metrics import NodeMetrics
from fastquorum.observe.families import View
from fastquorum.observe.health import readiness
from fastquorum.observe.process import process_now
from fastquorum.observe.stages import counted
from fastquorum.observe.window import Window
from fastquorum.types import Micros

Told = Callable[[NodeMetrics], None]
_NEVER: Final = -1


class Recorder:
    """Of one node."""

    def __init__(self, node: RunningNode) -> None:
        self.node = node
        self._guard = threading.Lock()
        self._told: list[Told] = []
        self._asked_us: Micros = _NEVER
        self._window = Window()

    def ask(self, told: Told) -> None:
        """Have `told` called on the replica's thread; it must not block. Never called if the replica never answers."""
        with self._guard:
            self._told.append(told)
            if self._asked_us >= 0:
                return
            self._asked_us = now_us()
        self.node.measure(self._on_measured)

    def look(self, timeout_s: float) -> View | None:
        """Ask and wait; None if there is no answer in time. On any thread but the replica's."""
        answered = threading.Event()
        answers: list[NodeMetrics] = []

        def told(metrics: NodeMetrics) -> None:
            answers.append(metrics)
            answered.set()

        self.ask(told)
        if answered.wait(timeout_s):
            return self.view(answers[0])
        self.forget(told)
        return None

    @property
    def silent_us(self) -> Micros:
        """How long the question under way has not been answered; 0 if there is none."""
        asked_us = self._asked_us
        return now_us() - asked_us if asked_us >= 0 else 0

    def forget(self, told: Told) -> None:
        """Whoever asked does not wait any more."""
        with self._guard:
            if told in self._told:
                self._told.remove(told)

    def view(self, metrics: NodeMetrics) -> View:
        """All that an exporter tells. On any thread but the replica's."""
        stages = counted(self.node.stage_histograms())
        with self._guard:
            recent = self._window.add(metrics, stages)
        is_ready = readiness(self.node, metrics, 0).is_good
        return View(metrics, stages, recent, process_now(), is_ready)

    def _on_measured(self, metrics: NodeMetrics) -> None:
        with self._guard:
            told, self._told = self._told, []
            self._asked_us = _NEVER
        for each in told:
            each(metrics)
