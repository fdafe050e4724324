"""Two controllers of ours and one of Kafka's under Kafka's brokers: whoever is active hands over to the other kind, and
back, while clients work."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fastquorum.kernels import load

from .brokers import Cluster, cluster
from .brokers_campaign import Run, Size, finish
from .kafka import Kafka
from .mixed import Member
from .mixed_quorum import Quorum, Stage
from .traffic import Traffic, traffic

THEIRS: Final = (3,)
"""Kafka's controllers."""
BROKERS: Final = (11, 12)
SIZE: Final = Size(topics=3, partitions=3, clients=1, within_s=90.0)
LACKS: Final = 4
"""Records that are committed without who is not to be elected: an active controller appends a no-op every 0.5 s."""


class Turns:
    """Makes the controllers active, one after the other."""

    def __init__(self, stage: Stage, run: Run, clients: Traffic) -> None:
        self._quorum = Quorum(stage, list(run.kafkas.controllers.values()))
        self._run = run
        self._clients = clients
        self.made: list[str] = []
        """Topics, by whoever was active then."""

    def first(self) -> None:
        """One of ours: Kafka's was started after them."""
        assert self._quorum.leader().is_ours
        self._works()

    def takes(self, go: Callable[[Member], None], *, is_ours: bool) -> None:
        """The active controller goes, and one of the other kind must be elected: of two the other one was paused, and
        lacks what is committed. Who went returns."""
        quorum = self._quorum
        leader = quorum.leader()
        assert leader.is_ours is not is_ours
        heir = next(each for each in quorum.members if each.is_ours is is_ours)
        third = quorum.follower(besides=heir)
        quorum.caught_up(heir, third)
        quorum.pause(third)
        quorum.committed(quorum.describe().partition.high_watermark + LACKS)
        go(leader)
        quorum.resume(third)
        assert quorum.leader(besides=leader) is heir
        self._works()
        leader.start()
        quorum.caught_up(leader, third)

    def _works(self) -> None:
        """The active controller makes, grows and configures a topic, and clients go on."""
        kafkas, topic = self._run.kafkas, f"made-{len(self.made)}"
        self.made.append(topic)
        kafkas.topics("--create", "--topic", topic, "--partitions", "2", "--replication-factor", "2")
        kafkas.topics_in_time("--alter", "--topic", topic, "--partitions", "4")
        entity = ("--entity-type", "topics", "--entity-name", topic)
        kafkas.configure("--alter", *entity, "--add-config", "retention.ms=90000000")
        self._run.wait(f"{topic}", lambda: len(kafkas.partitions(topic)) == 4 and kafkas.is_whole(topic))
        self._clients.goes_on(self._run.size.within_s)


def play(kafkas: Cluster, stage: Stage, say: Callable[[str], None]) -> dict[str, Any]:
    """The report; the cluster is stopped afterwards. AssertionError if a wait is in vain."""
    run = Run(kafkas, SIZE, say)
    run.step("topics are made", run.create)
    with traffic(kafkas.bootstrap, run.partitions, SIZE.clients) as clients:
        turns = Turns(stage, run, clients)
        run.step("ours is active", turns.first)
        run.step("ours is killed, Kafka's is active", lambda: turns.takes(Member.kill, is_ours=False))
        run.step("Kafka's is stopped, ours is active", lambda: turns.takes(Member.stop, is_ours=True))
        run.step("ours is stopped, Kafka's is active", lambda: turns.takes(Member.stop, is_ours=False))
        run.step("Kafka's is killed, ours is active", lambda: turns.takes(Member.kill, is_ours=True))
        run.step("preferred leaders return", run.preferred_leaders_return)
        run.step("clients end", lambda: clients.finish(SIZE.within_s))
    return finish(run, clients, clients.wrong(), *turns.made)


def mixed_controllers(kafka: Kafka, say: Callable[[str], None]) -> dict[str, Any]:
    """A report."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        with cluster(kafka, root, theirs=THEIRS, brokers=BROKERS) as kafkas:
            try:
                report = play(kafkas, Stage(kafka, load("native"), root, commits=0), say)
            except AssertionError as failed:
                report = {"problems": [str(failed)]}
    return {"kafka": kafka.version, **report}
