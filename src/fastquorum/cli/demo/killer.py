"""Kills the leader at given moments and starts it again, in a thread of its own: the appender is not asked."""

import threading
import time
from collections.abc import Callable
from typing import Final

from fastquorum.cli.demo.nodes import START_S, DemoNodes
from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import FastQuorumError, NotReady
from fastquorum.types import NodeId

LOOK_S: Final = 0.005
DOWN_S_MAX: Final = 5.0
"""A victim is started again once the others go on without it, at the latest after this."""


class Killer(threading.Thread):
    """One kill for each of `moments`, which count acknowledged records."""

    def __init__(
        self,
        nodes: DemoNodes,
        client: QuorumClient,
        moments: list[int],
        acknowledged: Callable[[], int],
        say: Callable[[str], None],
    ) -> None:
        super().__init__(name="killer", daemon=True)
        self._nodes = nodes
        self._client = client
        self._moments = moments
        self._acknowledged = acknowledged
        self._say = say
        self._over = threading.Event()
        self.kills = 0
        self.struck = threading.Event()
        """The last kill was made, or none will be any more."""
        self.error: FastQuorumError | None = None

    def stop(self) -> None:
        """Wait until it is not in the middle of something."""
        self._over.set()
        self.join()

    def run(self) -> None:
        try:
            for moment in self._moments:
                while self._acknowledged() < moment:
                    if self._over.wait(LOOK_S):
                        return
                self._kill_and_restart()
        except FastQuorumError as error:
            self.error = error
        finally:
            self.struck.set()

    def _kill_and_restart(self) -> None:
        victim = self._leader_of_a_whole_quorum()
        if victim is None:
            return
        self._nodes.by_id[victim].kill()
        self.kills += 1
        if self.kills == len(self._moments):
            self.struck.set()
        at = self._acknowledged()
        self._say(f"kill -9 of node {victim}, the leader, after {at} records")
        began = time.monotonic()
        others = len(self._nodes.by_id) - 1
        if others > len(self._nodes.by_id) // 2:
            # Two, as one may have been committed already when the leader died.
            while self._acknowledged() < at + 2 and time.monotonic() < began + DOWN_S_MAX:
                if self._over.wait(LOOK_S):
                    break
            self._say(f"the others go on after {time.monotonic() - began:.2f} s; node {victim} is started again")
        self._client.forget_leader()
        self._nodes.by_id[victim].start()
        self._nodes.by_id[victim].wait_listening(Deadline(START_S))

    def _leader_of_a_whole_quorum(self) -> NodeId | None:
        """The leader, once all voters follow it closely: a second kill must leave a majority that has everything."""
        deadline = Deadline(START_S)
        while not self._over.is_set():
            self._client.forget_leader()
            partition = self._client.describe(deadline).topics[0].partitions[0]
            if all(row.log_end_offset >= partition.high_watermark - 1 for row in partition.current_voters):
                return partition.leader_id
            if deadline.is_over:
                raise NotReady("a restarted node has not caught up")
            self._over.wait(LOOK_S)
        return None
