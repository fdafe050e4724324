"""Topics created: what is asked of a controller, and the same records as znodes asked of ZooKeeper."""

from collections.abc import Mapping, Sequence
from typing import Final

from bench.compare.workload import BadAnswer
from bench.controllers.loop import Work
from bench.controllers.wire import Connection, Request
from fastquorum.types import NodeId, Uuid
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse

VERSION: Final = 7
TIMEOUT_MS: Final = 60_000
REPLICAS: Final = 3

CreatableTopic = CreateTopicsRequest.CreatableTopic


def request(topics: Sequence[CreatableTopic]) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=TIMEOUT_MS)


def placed(name: str, partitions: int) -> CreatableTopic:
    """Where the controller wants them."""
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=REPLICAS)


def assigned(name: str, replicas: Sequence[Sequence[NodeId]]) -> CreatableTopic:
    """Each partition's replicas; the first leads."""
    of = CreatableTopic.CreatableReplicaAssignment
    chosen = [of(partition_index=number, broker_ids=list(each)) for number, each in enumerate(replicas)]
    return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=chosen)


def created(answer: CreateTopicsResponse) -> Mapping[str, Uuid]:
    """The id of each topic. BadAnswer: one was refused."""
    for each in answer.topics:
        if each.error_code:
            raise BadAnswer(f"topic {each.name}: {error_name(each.error_code)}, {each.error_message}")
    return {each.name: each.topic_id for each in answer.topics}


class Creations(Work):
    """Topics of one partition and three replicas, so many a request."""

    def __init__(self, name: str, batch: int) -> None:
        super().__init__()
        self._name, self._batch = name, batch
        self._next = 0
        self.created = 0

    def encode(self, connection: Connection, slot: int) -> Request:
        names = [f"{self._name}-{number}" for number in range(self._next, self._next + self._batch)]
        self._next += self._batch
        data, decode = connection.encoded(request([placed(name, 1) for name in names]), VERSION)

        def check(frame: bytes) -> int:
            found = created(decode(frame))
            if found.keys() != set(names):
                raise BadAnswer(f"{self._batch} topics from {names[0]} on were asked for, and {len(found)} answered")
            self.created += len(found)
            return len(found)

        return Request(data, check)
