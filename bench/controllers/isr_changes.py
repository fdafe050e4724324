"""ISR changes a second, asked for by simulated leaders: a follower leaves the ISR and comes back, over and over."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.compare.workload import BadAnswer
from bench.controllers import brokers, creating
from bench.controllers.brokers import Broker, Brokers
from bench.controllers.loop import Load, Work, closed_loop
from bench.controllers.quorums import Quorum
from bench.controllers.rounds import Setting, contenders, rows, take_turns
from bench.controllers.wire import Connection, Request
from bench.figures.figure import Goal, Measured
from fastquorum.controller.image import Image
from fastquorum.types import NodeId, Uuid
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from fastquorum.wire.messages.topics import CreateTopicsResponse

VERSION: Final = 3
BROKERS: Final = 6
HEARTBEAT_S: Final = 2.0
BATCH: Final = 100
BATCHES_IN_FLIGHT: Final = 4
GOAL: Final = Goal(at_least=3)
ONE, MANY = "one a request", "many a request"

Loads = Mapping[str, Load]
State = AlterPartitionRequest.TopicData.PartitionData.BrokerState


def measure(setting: Setting, directory: Path) -> Measured:
    measured = Measured()

    def turn(quorum: Quorum, warm_s: float) -> Loads:
        return asyncio.run(_turn(setting, quorum, warm_s))

    turns = contenders(setting, measured, {}, turn)
    taken = take_turns(setting, measured, directory, turns)
    of = {
        ONE: f"one a request, {setting.in_flight} in flight",
        MANY: f"{BATCH} a request, {BATCHES_IN_FLIGHT} in flight",
    }
    for how, what in of.items():
        measured.rows += rows(what, "changes/s", taken, lambda loads, how=how: loads[how].per_s, GOAL)
    measured.how = {"replicas": 3, "brokers": BROKERS, "seconds": setting.seconds, "rounds": setting.rounds}
    measured.details = {
        name: [{how: load.as_json() for how, load in loads.items()} for loads in by_round.values()]
        for name, by_round in taken.items()
    }
    return measured


async def _turn(setting: Setting, quorum: Quorum, warm_s: float) -> Loads:
    endpoint = quorum.endpoints[quorum.active()]
    async with await Brokers.join(endpoint, brokers.ids(BROKERS), HEARTBEAT_S) as joined:
        connections = [await Connection.open(endpoint) for _ in range(setting.in_flight)]
        try:
            members = list(joined.all.values())
            ones = await leaders(connections[0], "one", members, setting.in_flight, 1)
            many = await leaders(connections[0], "many", members, BATCHES_IN_FLIGHT, BATCH)
            few = connections[:BATCHES_IN_FLIGHT]
            warm = await closed_loop(connections, ones, warm_s, quorum.cpu_us)
            singles = await closed_loop(connections, ones, setting.seconds, quorum.cpu_us, warm)
            warm = await closed_loop(few, many, warm_s / 2, quorum.cpu_us)
            batches = await closed_loop(few, many, setting.seconds, quorum.cpu_us, warm)
        finally:
            for each in connections:
                each.close()
    image = quorum.image()
    ones.check(image)
    many.check(image)
    return {ONE: singles, MANY: batches}


async def leaders(
    connection: Connection, name: str, members: Sequence[Broker], slots: int, partitions: int
) -> "IsrChanges":
    """A topic for each slot, all of it led by one broker."""
    teams = [[members[(slot + each) % len(members)] for each in range(creating.REPLICAS)] for slot in range(slots)]
    topics = [
        creating.assigned(f"{name}-{slot}", [[each.id for each in team]] * partitions)
        for slot, team in enumerate(teams)
    ]
    answer = await connection.ask(creating.request(topics), creating.VERSION, CreateTopicsResponse)
    topic_ids = creating.created(answer)
    return IsrChanges([_Topic(topic_ids[f"{name}-{slot}"], team, partitions) for slot, team in enumerate(teams)])


class _Topic:
    """The partitions of one leader."""

    def __init__(self, topic_id: Uuid, team: Sequence[Broker], partitions: int) -> None:
        self.topic_id, self.team, self.partitions = topic_id, team, partitions
        self.encoded = self.changes = 0
        """Changes encoded and acknowledged for each partition; their number is its epoch."""

    def isr(self, changes: int) -> list[Broker]:
        """Return the ISR after so many changes: without its last follower, and with it, by turns."""
        return list(self.team[:-1] if changes % 2 else self.team)


class IsrChanges(Work):
    """By turns all of a topic's partitions lose their last follower and get it back."""

    def __init__(self, topics: Sequence[_Topic]) -> None:
        super().__init__()
        self.topics = topics

    def encode(self, connection: Connection, slot: int) -> Request:
        topic = self.topics[slot]
        epoch = topic.encoded
        topic.encoded += 1
        wanted = topic.isr(topic.encoded)
        data, decode = connection.encoded(_request(topic, epoch, wanted), VERSION)
        members = [each.id for each in wanted]

        def check(frame: bytes) -> int:
            _check(topic, epoch + 1, members, decode(frame))
            topic.changes += 1
            return topic.partitions

        return Request(data, check)

    def check(self, image: Image) -> None:
        """BadAnswer: what is committed is not what was acknowledged."""
        for topic in self.topics:
            isr = tuple(each.id for each in topic.isr(topic.changes))
            for number, partition in image.topics.by_id[topic.topic_id].partitions.items():
                if partition.isr != isr or partition.partition_epoch != topic.changes:
                    raise BadAnswer(
                        f"partition {number} has changed {partition.partition_epoch} times and has the ISR "
                        f"{partition.isr}, where {topic.changes} changes were acknowledged, the last to {isr}"
                    )


def _check(topic: _Topic, epoch: int, members: Sequence[NodeId], answer: AlterPartitionResponse) -> None:
    if answer.error_code:
        raise BadAnswer(f"AlterPartition: {error_name(answer.error_code)}")
    partitions = [
        each
        for topic_answer in answer.topics
        for each in topic_answer.partitions
        if topic_answer.topic_id == topic.topic_id
    ]
    for each in partitions:
        if each.error_code or each.isr != members or each.leader_epoch or each.partition_epoch != epoch:
            raise BadAnswer(
                f"partition {each.partition_index}: {error_name(each.error_code)}, ISR {each.isr}, epoch "
                f"{each.partition_epoch}"
            )
    if [each.partition_index for each in partitions] != list(range(topic.partitions)):
        raise BadAnswer(f"{topic.partitions} partitions were to change, and {len(partitions)} are answered")


def _request(topic: _Topic, epoch: int, wanted: Sequence[Broker]) -> AlterPartitionRequest:
    of = AlterPartitionRequest.TopicData
    isr = [State(broker_id=each.id, broker_epoch=each.epoch) for each in wanted]
    partitions = [
        of.PartitionData(partition_index=number, leader_epoch=0, new_isr_with_epochs=isr, partition_epoch=epoch)
        for number in range(topic.partitions)
    ]
    leader = topic.team[0]
    return AlterPartitionRequest(
        broker_id=leader.id,
        broker_epoch=leader.epoch,
        topics=[of(topic_id=topic.topic_id, partitions=partitions)],
    )
