"""One node under fire: groups of mutants on connections of their own, and what became of each."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.interop.nodes import Nodes
from tests.process.processes import WAIT_S

from .forgery import Stream
from .line import Line
from .mutations import Mutant
from .nodes_time import Stopwatch, complaints
from .report import Counts, Finding

ENDING_S: Final = 5.0
"""How long a process may take to be gone once its connections are closed."""
HANG_S: Final = 1.0
"""A node hangs if a valid request waits for so much of its own time without a response."""


@dataclass(slots=True)
class Group:
    """Mutants sent one behind the other on one connection, the only one to end it last."""

    line: Line
    parts: Sequence[tuple[Mutant, Stream]]
    probe: int

    @property
    def mutants(self) -> list[Mutant]:
        return [mutant for mutant, _ in self.parts]

    @property
    def last(self) -> Stream:
        return self.parts[-1][1]

    @property
    def may_wait(self) -> bool:
        return any(stream.may_wait for _, stream in self.parts)

    @property
    def is_left_waiting(self) -> bool:
        return self.last.is_partial or any(stream.will_park for _, stream in self.parts)


class Target:
    """A node, a connection to look whether it still answers, and one that mutants may share."""

    def __init__(self, nodes: Nodes, node_id: int, counts: Counts) -> None:
        self.node_id = node_id
        self._nodes = nodes
        self._counts = counts
        self._lines: set[Line] = set()
        self._kept: Line | None = None
        self._clean = self.connect(keep=False)
        self._watch: Stopwatch | None = None

    def connect(self, *, keep: bool) -> Line:
        """A new connection. Finding if nobody listens."""
        try:
            line = Line(self._nodes.ports[self.node_id], keep=keep)
        except OSError as error:
            self.check_alive(ENDING_S)
            raise Finding("no connection", f"node {self.node_id}: {error}") from error
        self._lines.add(line)
        self._counts.connections += 1
        return line

    def close(self) -> None:
        """Every connection."""
        for line in [*self._lines]:
            self._drop(line)

    def _drop(self, line: Line) -> None:
        line.close()
        self._lines.discard(line)

    # --- mutants ------------------------------------------------------------------------------------------------------

    def send(self, parts: Sequence[tuple[Mutant, Stream]]) -> Group:
        """On the shared connection, if it is still good."""
        line, self._kept = self._kept or self.connect(keep=False), None
        for mutant, stream in parts:
            at = 0
            for cut in (*mutant.cuts, len(stream.data)):
                line.send(stream.data[at:cut])
                at = max(at, cut)
        # Behind part of a frame a probe would only be more of it.
        return Group(line, parts, 0 if parts[-1][1].is_partial else line.probe())

    def finish(self, group: Group) -> None:
        """Return once the group is answered, hung up on, or rightly kept waiting."""
        line = group.line
        patience_s = time.monotonic() + WAIT_S

        def is_done() -> bool:
            if group.is_left_waiting and not line.has_unsent:
                return True
            return bool(group.probe) and line.answered_probe >= group.probe

        def on_idle() -> None:
            if not group.may_wait:
                self.judge("mutants, and a valid request behind them, are not answered", group.mutants)
            elif self._is_overdue():
                self.probe()
                if time.monotonic() > patience_s:
                    raise Finding(
                        "no answer", f"node {self.node_id} never answers what may wait for other nodes", group.mutants
                    )

        line.wait(is_done, on_idle, self.on_received)
        self._counts.answers += line.answered
        if line.is_over:
            self._counts.hung_up_on += 1
            self._drop(line)
            if not group.last.ends:
                self.check_alive(ENDING_S)
                raise Finding(
                    "hung up", f"node {self.node_id} closed a connection of well-formed requests", group.mutants
                )
        elif group.is_left_waiting:
            self._counts.left_waiting += 1
            self.probe()
            self._drop(line)
        else:
            self._check_answers(group)

    def _check_answers(self, group: Group) -> None:
        """The valid request is answered, and so is, in order, all that was before it."""
        line, owed = group.line, sum(stream.owed for _, stream in group.parts)
        if any(stream.has_replica for _, stream in group.parts):
            self._drop(line)  # some of its answers may still be to come
            return
        if line.answered != owed + 1:
            text = f"node {self.node_id} gave {line.answered - 1} answers to {owed} requests"
            raise Finding("answers", text, group.mutants)
        line.answered = 0
        if self._kept is None:
            self._kept = line
        else:
            self._drop(line)

    # --- the judge ----------------------------------------------------------------------------------------------------

    def on_received(self) -> None:
        """It said something, or took something: its time begins anew."""
        self._watch = None

    def _is_overdue(self) -> bool:
        self.check_alive()
        if self._watch is None:
            self._watch = Stopwatch(self._nodes.pid(self.node_id))
        return self._watch.read_s() > HANG_S

    def judge(self, what: str, mutants: Sequence[Mutant] = ()) -> None:
        """Called while nothing comes. Finding if that is too long already."""
        if self._is_overdue():
            raise Finding("hang", f"node {self.node_id}: {what} within {HANG_S} s of its own time", mutants)

    def probe(self) -> None:
        """A valid request on a connection that never saw a mutant. Finding if it is not answered in time."""
        line = self._clean
        number = line.probe()
        self.on_received()
        line.wait(
            lambda: line.answered_probe >= number,
            lambda: self.judge("a valid request on another connection is not answered"),
            self.on_received,
        )
        if line.is_over:
            self.check_alive(ENDING_S)
            raise Finding("hung up", f"node {self.node_id} closed a connection on which nothing was wrong")

    def check_alive(self, within_s: float = 0) -> None:
        """Finding if it ended, or does so by then."""
        code = self._nodes.exit_code(self.node_id, within_s)
        if code is not None:
            errors = self._nodes.stderr(self.node_id)
            raise Finding("died", f"node {self.node_id} ended with {code}: {errors[-4000:]}")

    def check_complaints(self) -> None:
        """Finding if its stderr tells of a bug."""
        found = complaints(self._nodes.stderr(self.node_id))
        if found:
            raise Finding("complaint", f"node {self.node_id}: " + "\n".join(found))
