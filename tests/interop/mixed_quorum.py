"""One quorum of our nodes and Apache Kafka's controllers while it runs: who leads, commits, kills, and what is left."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final, TypeVar

from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels
from fastquorum.types import Endpoint

from .directories import fastquorum
from .kafka import Kafka
from .mixed import Member, Settings, batches, jvm_controller, our_node
from .nodes import Description

T = TypeVar("T")

WAIT_S: Final = 120.0
LOOK_S: Final = 3.0
LOOK_AGAIN_S: Final = 0.02
NO_OP: Final = bytes.fromhex("01140000")
"""A NoOpRecord."""
JVM: Final[Settings] = {
    # Kafka's controller commits by itself while it leads: no-ops, each in a batch of its own.
    "metadata.max.idle.interval.ms": 5,
    "controller.quorum.append.linger.ms": 0,
}


def wait_for(what: str, probe: Callable[[], T | None]) -> T:
    """Ask until there is an answer."""
    until = time.monotonic() + WAIT_S
    while (found := probe()) is None:
        assert time.monotonic() < until, f"still waiting for {what}"
        time.sleep(LOOK_AGAIN_S)
    return found


@dataclass(frozen=True)
class Place:
    """The identity of a node."""

    node_id: int
    port: int
    cluster: str
    voters: str
    bootstrap: str
    is_static: bool = False
    observes: bool = False


@dataclass
class Stage:
    """What a scenario is played with. In a reference run (`is_reference`) Kafka's controllers play our parts, too."""

    kafka: Kafka
    kernels: Kernels
    root: Path
    commits: int
    """Before, during and after each kill."""
    is_reference: bool = False
    say: Callable[[str], None] = lambda _: None
    members: list[Member] = field(default_factory=list)
    """Whoever took part; whoever is left is stopped in the end."""
    clients: list[QuorumClient] = field(default_factory=list)
    """Closed in the end."""

    def first(self, place: Place, settings: Settings | None = None) -> Member:
        """Our node, or what stands for it in a reference run."""
        if self.is_reference:
            return self.kafkas(place, settings)
        more = ["--observer"] if place.observes else []
        directory = self.root / f"ours-{place.node_id}"
        made = our_node(directory, place.node_id, place.port, place.cluster, place.voters, *more, settings=settings)
        return self.add(made)

    def kafkas(self, place: Place, settings: Settings | None = None, directory: Path | None = None) -> Member:
        """A controller of Kafka's; not formatted if it is given a directory."""
        made = jvm_controller(
            self.kafka,
            directory or self.root / f"kafka-{place.node_id}",
            place.node_id,
            place.port,
            place.cluster,
            voters="" if place.observes else place.voters,
            bootstrap=place.bootstrap,
            static=place.is_static,
            formatted=directory is not None,
            settings={**JVM, **(settings or {})},
        )
        return self.add(made)

    def to_kafka(self, member: Member, place: Place) -> Member:
        """Kafka's controller on the directory of our node, which has stopped."""
        if self.is_reference:
            return member
        fastquorum("handover", "--to-kafka", member.directory)
        return self.kafkas(place, directory=member.directory)

    def from_kafka(self, member: Member, theirs: Member) -> Member:
        """Our node again."""
        if not self.is_reference:
            fastquorum("handover", "--from-kafka", theirs.directory)
        return member

    def add(self, member: Member) -> Member:
        self.members.append(member)
        return member

    def stop(self) -> None:
        for client in self.clients:
            client.close()
        for member in self.members:
            member.stop()


def uuids(count: int) -> list[str]:
    return [fastquorum("random-uuid").strip() for _ in range(count)]


def endpoint(member: Member) -> Endpoint:
    return Endpoint("CONTROLLER", "127.0.0.1", member.port)


@dataclass
class Load:
    """No-ops, one after the other, each appended to our leader when the one before is committed."""

    client: QuorumClient
    epoch: int
    count: int
    offsets: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: FastQuorumError | None = None

    def run(self) -> None:
        try:
            while len(self.offsets) < self.count:
                began = time.monotonic()
                self.offsets.append(self.client.append([NO_OP], Deadline(WAIT_S)))
                self.seconds.append(time.monotonic() - began)
        except FastQuorumError as error:
            self.failed = error


class Quorum:
    """Nodes that are to agree, voters and observers."""

    def __init__(self, stage: Stage, members: list[Member]) -> None:
        self.stage = stage
        self.members = members
        self.loads: list[Load] = []
        self._paused: set[int] = set()

    def __getitem__(self, node_id: int) -> Member:
        return next(member for member in self.members if member.id == node_id)

    # --- who leads, and how far it is ---------------------------------------------------------------------------------

    def look(self) -> Description | None:
        """Return the quorum as the leader sees it; None while no leader, or no high watermark, is known."""
        for member in self.members:
            member.check()
        endpoints = [endpoint(each) for each in self.members if each.is_started and each.id not in self._paused]
        with QuorumClient(endpoints, self.stage.kernels) as client:
            try:
                found = Description(client.describe(Deadline(LOOK_S)))
            except FastQuorumError:
                return None
        return found if found.partition.high_watermark >= 0 else None

    def describe(self) -> Description:
        return wait_for("a leader", self.look)

    def leader(self, *, besides: Member | None = None) -> Member:
        """Whoever leads; somebody else than `besides`."""

        def other() -> Member | None:
            found = self.look()
            return self[found.leader_id] if found and (besides is None or found.leader_id != besides.id) else None

        return wait_for(f"a leader other than {besides}", other)

    def follower(self, *, besides: Member) -> Member:
        """A voter that runs and neither leads nor is `besides`."""
        found = self.describe()
        others = [self[each] for each in found.end_offsets if each not in (found.leader_id, besides.id)]
        return next(each for each in others if each.is_started)

    def committed(self, at_least: int) -> int:
        """Wait until so much is committed; the high watermark."""

        def reached() -> int | None:
            found = self.look()
            mark: int = found.partition.high_watermark if found is not None else -1
            return mark if mark >= at_least else None

        return wait_for(f"a high watermark of {at_least}", reached)

    def caught_up(self, *members: Member) -> int:
        """Wait until they are up and have fetched what is committed now, by the leader's account; how far that is."""
        target: int = self.describe().partition.high_watermark

        def reached() -> bool | None:
            found = self.look()
            rows = [*found.partition.current_voters, *found.partition.observers] if found is not None else []
            up = {row.replica_id for row in rows if row.log_end_offset >= target}
            return True if all(each.id in up and each.is_up for each in members) else None

        wait_for(f"{members} to have all below {target}", reached)
        return target

    # --- what is done to it -------------------------------------------------------------------------------------------

    def pause(self, member: Member) -> None:
        self._paused.add(member.id)
        member.pause()

    def resume(self, member: Member) -> None:
        self._paused.discard(member.id)
        member.resume()

    def commit(self, count: int, do: Callable[[], None] | None = None) -> None:
        """So many commits, by whoever leads. `do`, a kill, comes when half of them are there and others are under way;
        the rest is committed by whoever leads after it."""
        found = self.describe()
        end = found.partition.high_watermark + count
        leader = self[found.leader_id]
        if do is not None and leader.is_ours:
            load = self._load(found, count)
            thread = threading.Thread(target=load.run)
            thread.start()
            self.committed(end - count // 2)
            do()
            thread.join(WAIT_S)
            assert not thread.is_alive()
            assert load.failed is None or not leader.is_started, load.failed
        elif do is not None:
            self.committed(end - count // 2)
            do()
        self._commit_up_to(end)

    def _commit_up_to(self, end: int) -> None:
        found = self.describe()
        if self[found.leader_id].is_ours:
            load = self._load(found, max(end - found.partition.high_watermark, 0))
            load.run()
            assert load.failed is None, load.failed
        self.committed(end)

    def _load(self, found: Description, count: int) -> Load:
        client = QuorumClient([endpoint(self[found.leader_id])], self.stage.kernels)
        self.stage.clients.append(client)
        self.loads.append(Load(client, found.epoch, count))
        return self.loads[-1]

    def elect(self, heir: Member, count: int) -> Member:
        """The leader is killed with SIGKILL while it commits, and `heir` must be elected: the third voter was paused
        and lacks what is committed, so that it can only give its vote. Returns who was killed."""
        leader = self.leader()
        third = self.follower(besides=heir)
        self.pause(third)

        def kill() -> None:
            leader.kill()
            self.resume(third)
            assert self.leader(besides=leader) is heir

        self.commit(count, kill)
        return leader

    # --- the end ------------------------------------------------------------------------------------------------------

    def finish(self) -> dict[str, object]:
        """Stop all who run; their committed logs are the same bytes, and what was acknowledged is in there."""
        running = [member for member in self.members if member.is_started]
        reached = self.caught_up(*running)
        for member in running:
            member.stop()
        for member in running:
            assert fastquorum("log", "verify", member.directory).startswith("SOUND")
        logs = [batches(self.stage.kernels, member) for member in running]
        first = max(min(log) for log in logs)
        cut = [{base: log[base] for base in sorted(log) if first <= base < reached} for log in logs]
        assert cut[0]
        for member, log in zip(running, cut, strict=True):
            assert log == cut[0], f"{member} has another log than {running[0]}"
        for load in self.loads:
            for offset in load.offsets:
                assert offset < first or cut[0][offset][0] == load.epoch, f"offset {offset}, acknowledged, is another's"
        return {
            "from_offset": first,
            "high_watermark": reached,
            "equal_logs": len(running),
            "epochs": len({epoch for epoch, _ in cut[0].values()}),
            "acknowledged_by_ours": sum(len(load.offsets) for load in self.loads),
            "commit_ms_p50": [round(median(load.seconds) * 1000, 2) for load in self.loads if load.seconds],
        }
