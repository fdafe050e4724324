"""The beginning of a cluster: controllers and brokers register, and its permanent topics are created.

Sizes of topics are heavy-tailed (most have a handful of partitions, a few have hundreds), as Zipf's law has it.
"""

from bisect import bisect_right
from functools import partial
from itertools import accumulate
from typing import Final

from fastquorum.config import SECOND
from fastquorum.controller.ids import random_id
from fastquorum.controller.state.index import PartitionKey
from fastquorum.generate.calendar import MINUTE, Calendar
from fastquorum.generate.instant_controller import InstantController
from fastquorum.generate.sim_brokers import FEATURES, SimulatedBrokers
from fastquorum.sim.prng import Prng
from fastquorum.wire.messages.brokers import ControllerRegistrationRequest
from fastquorum.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse

REPLICATION: Final = 3
TOPIC_PARTITIONS_MAX: Final = 1_000
TYPICAL_PARTITIONS: Final = 3
REQUEST_RECORDS_MAX: Final = 9_500
"""Most records of a request: the controller's limit, less some room."""
BROKERS_OVER_US: Final = MINUTE
"""The time in which brokers start."""
_Created = CreateTopicsRequest.CreatableTopic
_Config = _Created.CreatableTopicConfig


class PermanentTopics:
    """The topics that a cluster keeps."""

    def __init__(self, sizes: list[int]) -> None:
        self._ends = list(accumulate(sizes))

    @staticmethod
    def name_of(number: int) -> str:
        return f"topic-{number:06d}"

    @property
    def partition_count(self) -> int:
        return self._ends[-1]

    @property
    def count(self) -> int:
        return len(self._ends)

    def pick(self, controller: InstantController, prng: Prng) -> PartitionKey:
        number = prng.randrange(self.partition_count)
        at = bisect_right(self._ends, number)
        before = self._ends[at - 1] if at else 0
        return PartitionKey(controller.image.topics.ids[self.name_of(at)], number - before)


def replication(broker_count: int) -> int:
    return min(REPLICATION, broker_count)


def draw_topics(prng: Prng, partition_count: int) -> list[int]:
    """Draw the number of partitions of each topic."""
    sizes = []
    left = partition_count
    while left:
        drawn = TYPICAL_PARTITIONS * 10**6 // (1 + prng.randrange(10**6))
        sizes.append(min(max(drawn, 1), TOPIC_PARTITIONS_MAX, left))
        left -= sizes[-1]
    return sizes


def register_controllers(controller: InstantController, calendar: Calendar, prng: Prng) -> None:
    """Plan the registration of each controller, once one is active."""
    for number, voter in enumerate(controller.voters):
        listener = ControllerRegistrationRequest.Listener
        feature = ControllerRegistrationRequest.Feature
        request = ControllerRegistrationRequest(
            controller_id=voter.key.id,
            incarnation_id=random_id(prng),
            listeners=[listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints],
            features=[feature(name=name, min_supported_version=a, max_supported_version=b) for name, a, b in FEATURES],
        )
        calendar.after((1 + number) * SECOND, partial(controller.ask, request))


def start_brokers(calendar: Calendar, sim_brokers: SimulatedBrokers) -> None:
    """Plan the starts of all brokers, one after another."""
    for number, broker_id in enumerate(sim_brokers.ids):
        at_us = 10 * SECOND + number * BROKERS_OVER_US // len(sim_brokers.ids)
        calendar.at(at_us, partial(sim_brokers.start, broker_id))
        calendar.at(at_us + 2 * SECOND, partial(sim_brokers.unfence, broker_id))


def topic_requests(prng: Prng, sizes: list[int], factor: int) -> list[CreateTopicsRequest]:
    """Return the fewest requests that create all topics."""
    requests: list[CreateTopicsRequest] = []
    room = 0
    for number, size in enumerate(sizes):
        configs = []
        if factor > 1 and prng.randrange(4) == 0:
            configs.append(_Config(name="min.insync.replicas", value=str(factor - 1)))
        if prng.randrange(8) == 0:
            configs.append(_Config(name="retention.ms", value=str(prng.between(1, 14) * 86_400_000)))
        wanted = 1 + size + len(configs)
        if wanted > room:
            requests.append(CreateTopicsRequest(topics=[]))
            room = REQUEST_RECORDS_MAX
        room -= wanted
        topic = _Created(
            name=PermanentTopics.name_of(number), num_partitions=size, replication_factor=factor, configs=configs
        )
        requests[-1].topics.append(topic)
    return requests


def create(controller: InstantController, request: CreateTopicsRequest) -> None:
    answer = controller.ask(request)
    assert isinstance(answer, CreateTopicsResponse)
    refused = [each for each in answer.topics if each.error_code]
    assert not refused, f"{len(refused)} topics are refused, the first with {refused[0]}"
