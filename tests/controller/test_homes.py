"""Where new replicas can go, and under which ids topics lie, as the present registrations have it. KIP-631."""

import random
from itertools import permutations

import pytest

from fastquorum.controller.ids import random_id
from fastquorum.controller.image.partition import DIRECTORY_UNASSIGNED, partition_record
from fastquorum.controller.state import replica_candidates
from fastquorum.controller.state.partition_change import ElectionKind
from fastquorum.wire.records.cluster import ConfigRecord
from tests.controller.rig import TOPIC_ID, Controller, directory_of, key, uuid


def allow_unclean(controller: Controller, topic: str) -> None:
    name = "unclean.leader.election.enable"
    controller.write(ConfigRecord(resource_type=2, resource_name=topic, name=name, value="true"))


class FirstDraw:
    """Chance whose first draw is given."""

    def __init__(self, first: int) -> None:
        self._draws = iter((first, 0))
        self._rest = random.Random(1)

    def randrange(self, stop: int, /) -> int:
        return next(self._draws, self._rest.randrange(stop))


def test_homes_are_those_of_the_brokers_that_are_there_now() -> None:
    controller = Controller()
    controller.start(1, 2)
    assert controller.state.replica_candidates.by_rack.racks == [([1, 2], [])]
    controller.register(3)
    assert controller.state.replica_candidates.by_rack.racks == [([1, 2], [3])]
    controller.beat(3)
    controller.unregister(1)
    assert controller.state.replica_candidates.by_rack.racks == [([2, 3], [])]


def test_homes_stay_while_no_registration_changes() -> None:
    controller = Controller()
    controller.start(1, 2, 3)
    made = controller.state.replica_candidates
    controller.topic([1, 2, 3])
    controller.alter([1, 2])
    assert controller.state.replica_candidates is made


def test_a_new_partition_is_in_sync_where_brokers_are_active() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.register(3)
    partition = controller.state.replica_candidates.new_partition((3, 2, 1))
    assert (partition.isr, partition.leader) == ((2, 1), 2)
    assert partition.directories == tuple(directory_of(each) for each in (3, 2, 1))
    assert controller.state.replica_candidates.new_partition((9, 1)).directories[0] == DIRECTORY_UNASSIGNED


def test_new_partitions_with_the_same_replicas_are_one_and_only_some_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_candidates, "NEW_MAX", 3)
    controller = Controller()
    controller.start(1, 2, 3)
    made = controller.state.replica_candidates
    every = list(permutations((1, 2, 3)))
    first = made.new_partition(every[0])
    assert made.new_partition(every[0]) is first
    assert [made.new_partition(each).replicas for each in every] == every
    assert made.new_partition(every[0]) == first
    controller.unregister(3)
    assert controller.state.replica_candidates.new_partition((3, 1)).isr == (1,)


def test_a_new_partition_s_numbers_are_plain_ones() -> None:
    controller = Controller()
    controller.start(1)
    partition = controller.state.replica_candidates.new_partition((1,))
    record = partition_record(TOPIC_ID, 0, partition, controller.state.level, with_elr=False)
    assert record.leader_recovery_state.__class__ is int, "an enumeration's are written by the slower codec"


def test_no_id_looks_like_an_option() -> None:
    for first in range(256):
        drawn = random_id(FirstDraw(first << 56))
        assert not str(drawn).startswith("-")
        assert (drawn[0] == first) is (first >> 2 != 62), "what does not is taken as it was drawn"


def test_what_holds_for_a_topic_is_asked_of_that_topic_and_of_the_present_image() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1, 2])
    controller.topic([1, 2], name="other", topic_id=uuid(7))
    allow_unclean(controller, "other")
    state = controller.state
    assert state.change(key()).election is ElectionKind.ONLINE
    assert state.change(key(topic_id=uuid(7))).election is ElectionKind.UNCLEAN
    assert not state.change(key(), gone=1).rules.is_active(1)
    assert state.change(key()).rules.is_active(1)
    allow_unclean(controller, "t")
    assert state.change(key()).election is ElectionKind.UNCLEAN
