"""What happens to the demo's cluster, act by act: each says what was seen, and notes what was acknowledged."""

import time
from collections import Counter
from typing import Final, NamedTuple

from fastquorum.broker.states import State, StateCause
from fastquorum.cli.demo.cluster.client import ClusterClient
from fastquorum.cli.demo.cluster.ledger import Change, FencedBroker, Left, Registered
from fastquorum.cli.demo.cluster.members import BrokerProcess
from fastquorum.cli.demo.nodes import START_S, DemoNodes
from fastquorum.cli.demo.screen import Screen
from fastquorum.client.connection import Deadline
from fastquorum.controller.image import Image
from fastquorum.controller.image.partition import Partition
from fastquorum.errors import FatalError
from fastquorum.types import NO_NODE, NodeId, Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.error_codes import error_name

TOPICS: Final = ("orders", "payments", "clicks")
PARTITIONS: Final = 4
REPLICAS_MAX: Final = 3
LET_GO: Final = str(StateCause.LET_GO)


class Shard(NamedTuple):
    """A partition at one moment."""

    topic: str
    topic_id: Uuid
    number: int
    partition: Partition


def shards_of(image: Image) -> list[Shard]:
    """By topic and number."""
    return [
        Shard(topic.name, topic.id, number, partition)
        for topic in image.topics.sorted()
        for number, partition in topic.partitions.items()
    ]


def led_by(image: Image, broker_id: NodeId) -> list[Shard]:
    return [each for each in shards_of(image) if each.partition.leader == broker_id]


class Acts:
    """One cluster, whose controllers run. The acts are called in their order; FastQuorumError ends the play."""

    def __init__(
        self, nodes: DemoNodes, members: dict[NodeId, BrokerProcess], client: ClusterClient, screen: Screen
    ) -> None:
        self._nodes = nodes
        self._members = members
        self._client = client
        self._say = screen.say
        self._replicas = min(len(members), REPLICAS_MAX)
        self._epochs: dict[NodeId, int] = {}
        """The latest broker epoch of each admitted broker."""
        self.ledger: list[Change] = []
        self.refusals: list[str] = []
        """Kafka's names of the errors that stale requests got, as they should."""
        self.kills = 0
        self.fenced_after_s = 0.0
        self.taken_over_after_s = 0.0

    def play(self) -> None:
        self._say(f"controller {self._client.active_controller()} is active")
        self._join()
        victim = self._kill_broker()
        former = self._kill_controller()
        self._return(victim, former)
        self._leave()

    # --- the acts -----------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        for member in self._members.values():
            member.start()
        for member in self._members.values():
            self._admit(member)
        under = ", ".join(f"{broker_id} under epoch {epoch}" for broker_id, epoch in self._epochs.items())
        self._say(f"brokers are registered, and unfenced: {under}")
        for name in TOPICS:
            self._create(name)
        image = self._client.committed().image
        count = len(shards_of(image))
        replicas = "1 replica" if self._replicas == 1 else f"{self._replicas} replicas"
        self._say(f"{len(TOPICS)} topics are created: {count} partitions, {replicas} each")
        self._say(f"of these {_leads(image)}")

    def _kill_broker(self) -> NodeId:
        """Kill the broker that leads most partitions; return its id."""
        before = self._client.committed().image
        victim = max(self._members, key=lambda each: (len(led_by(before, each)), -each))
        led = led_by(before, victim)
        if not led:
            raise FatalError("no broker leads anything: there is no lead to take away")
        self._members[victim].kill()
        self.kills += 1
        began = time.monotonic()
        self._say(f"kill -9 of broker {victim}, which leads {len(led)}")
        after = self._await_fenced(victim, FencedBroker)
        self.fenced_after_s = time.monotonic() - began
        moved = sum(_is_led_by_another(after, each) for each in led)
        now = "all of it has another leader"
        if moved < len(led):
            now = f"{moved} have another leader, {len(led) - moved} none, as no other replica was in sync"
        self._say(f"its session is over: fenced after {self.fenced_after_s:.2f} s; of what it led, {now}")
        self._act_for_the_dead(victim, led[0])
        return victim

    def _act_for_the_dead(self, victim: NodeId, shard: Shard) -> None:
        """A former leader must not change the partition under the leader epoch of that time."""
        former = shard.partition.leader_epoch, shard.partition.partition_epoch
        code = self._client.claim_isr(victim, self._epochs[victim], shard.topic_id, shard.number, former)
        what = f"a change of {shard.topic}-{shard.number} in its name, under leader epoch {former[0]},"
        self._refused(what, code, ErrorCode.FENCED_LEADER_EPOCH)

    def _kill_controller(self) -> NodeId:
        active = self._client.active_controller()
        self._nodes.by_id[active].kill()
        self.kills += 1
        began = time.monotonic()
        self._say(f"kill -9 of controller {active}, the active one")
        successor = self._client.active_controller(former=active)
        self.taken_over_after_s = time.monotonic() - began
        words = f"controller {successor} takes over after {self.taken_over_after_s:.2f} s"
        alive = [member for member in self._members.values() if not self._is_fenced(member.id)]
        if alive:  # a topic needs a broker
            self._create("refunds")
            for member in alive:
                self._await_follower(member, successor)
            words += (
                f", and creates a topic; {_listed(alive)} may act still, under the same epoch, and take it from there"
            )
        self._say(words)
        return active

    def _return(self, victim: NodeId, former: NodeId) -> None:
        stale = self._epochs[victim]
        self._nodes.by_id[former].start()
        self._nodes.by_id[former].wait_listening(Deadline(START_S))
        self._say(f"controller {former} is started again")
        self._members[victim].start()
        self._admit(self._members[victim])
        epoch = self._epochs[victim]
        if epoch <= stale:
            raise FatalError(f"broker {victim} is registered again under epoch {epoch}, after {stale}")
        image = self._client.committed().image
        held = [each for each in shards_of(image) if victim in each.partition.replicas]
        in_sync = [each for each in held if victim in each.partition.isr]
        self._say(
            f"broker {victim} is started again: unfenced under epoch {epoch}, in the ISR of {len(in_sync)} of its "
            f"{len(held)} partitions (the brokers of this demo copy no data, so no leader proposes it for more)"
        )
        code = self._client.beat(victim, stale)
        self._refused(f"a heartbeat in its name under the former epoch {stale}", code, ErrorCode.STALE_BROKER_EPOCH)
        self._create("returns")

    def _leave(self) -> None:
        """Stop the broker that leads most partitions that others could lead, and fewest that they could not."""
        before = self._client.committed().image
        leaver = max(self._members, key=lambda each: (_movable(before, each), -len(led_by(before, each)), -each))
        led = led_by(before, leaver)
        self._say(f"SIGTERM to broker {leaver}, which leads {len(led)}")
        last = self._members[leaver].leave()
        after = self._await_fenced(leaver, Left)
        moved = sum(_is_led_by_another(after, each) for each in led)
        leaderless = f", {len(led) - moved} have no broker that can lead them" if moved < len(led) else ""
        self._say(f"{moved} of {len(led)} moved to others first{leaderless}; then it was {last.reason}")
        if last.reason != LET_GO:
            raise FatalError(f"broker {leaver} stopped without the controller's permission: {last.reason}")

    # --- inner --------------------------------------------------------------------------------------------------------

    def _admit(self, member: BrokerProcess) -> None:
        epoch = member.wait_active()
        self._epochs[member.id] = epoch
        self.ledger.append(Registered(member.id, epoch))

    def _create(self, name: str) -> None:
        self.ledger.append(self._client.create_topic(name, PARTITIONS, self._replicas))

    def _await_follower(self, member: BrokerProcess, controller: NodeId) -> None:
        """Wait until the broker has its metadata from this controller, and may act as before."""
        wanted = State.ONLINE, self._epochs[member.id], controller
        member.wait(
            lambda standing: (standing.state, standing.epoch, standing.controller) == wanted,
            f"goes on with controller {controller}",
        )

    def _is_fenced(self, broker_id: NodeId) -> bool:
        return any(
            isinstance(each, FencedBroker | Left)
            and (each.broker_id, each.epoch) == (broker_id, self._epochs[broker_id])
            for each in self.ledger
        )

    def _await_fenced(self, broker_id: NodeId, as_what: type[FencedBroker] | type[Left]) -> Image:
        epoch = self._epochs[broker_id]

        def is_fenced(image: Image) -> bool:
            broker = image.brokers.get(broker_id)
            return broker is not None and broker.epoch == epoch and broker.fenced

        fold = self._client.wait_committed(is_fenced, f"broker {broker_id} is not fenced")
        self.ledger.append(as_what(broker_id, epoch, fold.place.end_offset))
        return fold.image

    def _refused(self, what: str, code: str, expected: ErrorCode) -> None:
        if code != error_name(expected):
            raise FatalError(f"{what} got {code}, not {error_name(expected)}")
        self.refusals.append(code)
        self._say(f"{what} is refused: {code}")


def _is_led_by_another(image: Image, shard: Shard) -> bool:
    """Is the shard now led by another broker than when it was read?"""
    partition = image.topics.partition(shard.topic_id, shard.number)
    return partition is not None and partition.leader not in (NO_NODE, shard.partition.leader)


def _movable(image: Image, broker_id: NodeId) -> int:
    """Count the partitions it leads for which another replica is in sync."""
    return sum(len(each.partition.isr) > 1 for each in led_by(image, broker_id))


def _leads(image: Image) -> str:
    counts = Counter(each.partition.leader for each in shards_of(image))
    return ", ".join(f"broker {broker} leads {count}" for broker, count in sorted(counts.items()))


def _listed(members: list[BrokerProcess]) -> str:
    """`brokers 11, 12 and 13`."""
    ids = [str(member.id) for member in members]
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {', '.join(ids[:-1])} and {ids[-1]}"
