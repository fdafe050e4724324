"""Leaders: elections as brokers come and go, eligible leader replicas, unclean ones, directories, reassignments.

KIP-631, KIP-455, KIP-858, KIP-966; K58 (KAFKA-15665), K59 (KAFKA-19522); C1, C2, C9, C10.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.controller.image.features import Level
from fastquorum.controller.image.partition import DIRECTORY_LOST, DIRECTORY_UNASSIGNED, Partition, changed
from fastquorum.controller.state.partition_change import ElectionKind, PartitionChange, Rules, is_online
from fastquorum.types import NO_NODE, NodeId
from fastquorum.wire.records.cluster import FeatureLevelRecord
from fastquorum.wire.records.topics import PartitionChangeRecord
from tests.controller.rig import TOPIC_ID, Controller, directory_of, uuid


def elr_three(min_isr: int = 2, **configs: str) -> Controller:
    controller = Controller(elr=True)
    controller.start(1, 2, 3)
    controller.topic([1, 2, 3], configs={"min_insync_replicas": str(min_isr), **configs})
    return controller


def leave(controller: Controller, *broker_ids: NodeId) -> None:
    for broker_id in broker_ids:
        controller.beat(broker_id, want_fence=True)


def who(partition: Partition) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return partition.leader, partition.isr, partition.elr, partition.last_known_elr


# --- without eligible leader replicas ---------------------------------------------------------------------------------


def test_the_next_in_the_order_of_assignment_leads() -> None:
    controller = Controller()
    controller.start(1, 2, 3)
    controller.topic([2, 3, 1])
    leave(controller, 2)
    assert who(controller.partition())[:2] == (3, (3, 1))
    assert controller.partition().leader_epoch == 1


def test_nobody_from_outside_the_isr_leads_unless_that_is_allowed() -> None:
    """C9."""
    for allowed, leader in (("false", NO_NODE), ("true", 2)):
        controller = Controller()
        controller.start(1, 2)
        controller.topic([1, 2], configs={"unclean_leader_election_enable": allowed})
        controller.alter([1])
        leave(controller, 1)
        assert controller.partition().leader == leader
        assert controller.partition().recovery == (leader == 2)


def test_who_comes_back_leads_what_it_was_last_in_sync_with() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1, 2], [2, 1])
    leave(controller, 1, 2)
    assert len(list(controller.state.index.leaderless())) == 2
    controller.beat(2)
    assert [controller.partition(number).leader for number in range(2)] == [2, 2]
    assert not list(controller.state.index.leaderless())


def test_a_partition_that_nobody_is_left_for_is_not_touched_by_who_comes() -> None:
    controller = Controller()
    controller.start(1, 2)
    controller.topic([1])
    leave(controller, 1)
    controller.beat(2)
    assert controller.written == [] or not any(isinstance(each, PartitionChangeRecord) for each in controller.written)


# --- with them --------------------------------------------------------------------------------------------------------


def test_below_the_least_isr_who_leaves_stays_eligible() -> None:
    controller = elr_three()
    leave(controller, 3)
    assert who(controller.partition()) == (1, (1, 2), (), ())
    leave(controller, 2)
    assert who(controller.partition()) == (1, (1,), (2,), ())
    leave(controller, 1)
    assert who(controller.partition()) == (NO_NODE, (), (1, 2), (1,))


def test_an_eligible_one_leads_when_it_comes_back_and_is_the_isr() -> None:
    controller = elr_three()
    leave(controller, 3, 2, 1)
    controller.beat(3)
    assert controller.partition().leader == NO_NODE, "it may lack what was committed"
    controller.beat(2)
    assert who(controller.partition()) == (2, (2,), (1,), ())
    assert controller.partition().recovery == 0


def test_at_the_least_isr_nobody_need_be_eligible_any_more() -> None:
    controller = elr_three()
    leave(controller, 3, 2)
    controller.beat(2)
    controller.alter([1, 2])
    assert who(controller.partition()) == (1, (1, 2), (), ())


def test_who_comes_back_without_its_data_is_not_eligible() -> None:
    """KIP-966: an unclean shutdown."""
    controller = elr_three()
    leave(controller, 3, 2, 1)
    controller.wait(10)
    controller.register(2, incarnation=2)
    assert who(controller.partition()) == (NO_NODE, (), (1,), (1,))
    clean = elr_three()
    leave(clean, 3, 2, 1)
    clean.wait(10)
    clean.register(2, incarnation=2, previous_broker_epoch=clean.broker(2).epoch)
    assert who(clean.partition()) == (NO_NODE, (), (1, 2), (1,))


def test_the_last_known_leader_leads_if_it_comes_back_though_it_may_have_lost_something() -> None:
    controller = elr_three()
    leave(controller, 3, 2, 1)
    controller.wait(10)
    controller.register(2, incarnation=2)
    controller.register(1, incarnation=2)
    assert who(controller.partition()) == (NO_NODE, (), (), (1,))
    controller.beat(2)
    assert controller.partition().leader == NO_NODE
    controller.beat(1)
    assert who(controller.partition()) == (1, (1,), (), ())
    assert controller.partition().recovery == 1


def test_the_last_known_leader_does_not_lead_while_it_is_fenced() -> None:
    """K59: KAFKA-19522."""
    controller = elr_three()
    leave(controller, 3, 2, 1)
    controller.wait(10)
    for broker_id in (2, 1):
        controller.register(broker_id, incarnation=2)
    controller.beat(2)
    assert controller.broker(1).fenced
    assert controller.partition().leader == NO_NODE


def test_where_nobody_is_eligible_any_more_who_was_so_does_not_lead() -> None:
    """It was given up while broker 2 was: what came back uncleanly since, or another least ISR, nobody has heeded."""
    controller = elr_three()
    leave(controller, 3, 2)
    controller.write(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0))
    controller.wait(10)
    controller.register(2, incarnation=2)
    controller.beat(2)
    assert who(controller.partition()) == (1, (1,), (2,), ())
    leave(controller, 1)
    assert who(controller.partition()) == (NO_NODE, (1,), (), ())
    controller.beat(1)
    assert controller.partition().leader == 1


def test_an_unregistered_broker_is_led_by_no_more() -> None:
    controller = elr_three()
    leave(controller, 3)
    controller.unregister(1)
    assert controller.partition().leader == 2


# --- directories ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("directory", "online", "there"),
    [
        (uuid(1), (uuid(1),), True),
        (uuid(1), (uuid(2),), False),
        (uuid(1), (), True),
        (DIRECTORY_LOST, (), False),
        (DIRECTORY_UNASSIGNED, (uuid(2),), True),
    ],
)
def test_a_replica_is_there_if_its_directory_is(directory: type, online: tuple[type, ...], there: bool) -> None:
    assert is_online(directory, online) is there  # type: ignore[arg-type]


# --- reassignments, and all of it -------------------------------------------------------------------------------------

BROKERS = (1, 2, 3, 4, 5)


def rules(active: set[int], *, elr: bool, min_isr: int, level: int = 30) -> Rules:
    return Rules(Level(level), min_isr, elr, active.__contains__, lambda broker: (directory_of(broker),), directory_of)


def moving(
    isr: tuple[int, ...],
    active: set[int],
    *,
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
) -> Partition:
    """What a reassignment under way is after a change of its ISR."""
    before = Partition(
        replicas, tuple(directory_of(each) for each in replicas), (1, 2), 1, 3, 5, removing=removing, adding=adding
    )
    change = PartitionChange(TOPIC_ID, 0, before, rules(active, elr=False, min_isr=1))
    change.isr = isr
    record = change.record()
    return before if record is None else changed(before, record)


def test_a_reassignment_is_done_when_all_that_were_added_are_in_sync() -> None:
    """K58: KAFKA-15665."""
    everybody = {1, 2, 3, 4}
    waiting = moving((1, 2, 3), everybody, replicas=(3, 4, 1, 2), adding=(3, 4), removing=(1, 2))
    assert (waiting.replicas, waiting.isr, waiting.leader) == ((3, 4, 1, 2), (1, 2, 3), 1)
    done = moving((1, 2, 3, 4), everybody, replicas=(3, 4, 1, 2), adding=(3, 4), removing=(1, 2))
    assert (done.replicas, done.isr, done.leader, done.adding, done.removing) == ((3, 4), (3, 4), 3, (), ())
    assert done.leader_epoch == 4


def test_fewer_replicas_wait_for_all_that_remain() -> None:
    waiting = moving((1, 2), {1, 2, 3}, replicas=(2, 3, 1), adding=(), removing=(1,))
    assert waiting.replicas == (2, 3, 1)
    done = moving((1, 2, 3), {1, 2, 3}, replicas=(2, 3, 1), adding=(), removing=(1,))
    assert (done.replicas, done.isr, done.leader) == ((2, 3), (2, 3), 2)


def test_the_preferred_one_is_elected_if_it_is_in_sync() -> None:
    before = Partition((1, 2, 3), tuple(directory_of(each) for each in (1, 2, 3)), (2, 3), 2, 0, 0)
    for isr, leader in (((2, 3), 2), ((2, 3, 1), 1)):
        change = PartitionChange(TOPIC_ID, 0, before._replace(isr=isr), rules({1, 2, 3}, elr=False, min_isr=1))
        change.election = ElectionKind.PREFERRED
        record = change.record()
        assert (leader == 2) if record is None else (record.leader == leader)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    replicas = tuple(draw(st.permutations(BROKERS))[: draw(st.integers(1, 4))])
    isr = tuple(draw(st.lists(st.sampled_from(replicas), unique=True)))
    rest = [each for each in replicas if each not in isr]
    elr = tuple(sorted(draw(st.lists(st.sampled_from(rest), unique=True)))) if rest else ()
    leader = draw(st.sampled_from((*isr, NO_NODE)))
    if not isr and not elr:
        isr = replicas[:1]
    known = () if leader != NO_NODE else draw(st.sampled_from([(), (replicas[0],)]))
    return Partition(
        replicas, tuple(directory_of(each) for each in replicas), isr, leader, 1, 1, elr=elr, last_known_elr=known
    )


@given(
    partitions(),
    st.sets(st.sampled_from(BROKERS)),
    st.sampled_from(list(ElectionKind)),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from(BROKERS),
)
def test_whatever_happens_a_leader_is_alive_and_in_sync(
    before: Partition, active: set[int], election: ElectionKind, elr: bool, min_isr: int, gone: int
) -> None:
    if not elr:
        before = before._replace(elr=(), last_known_elr=(), isr=before.isr or before.replicas[:1])
        if before.leader not in before.isr:
            before = before._replace(leader=NO_NODE)
    active -= {gone}
    change = PartitionChange(TOPIC_ID, 0, before, rules(active, elr=elr, min_isr=min_isr), election)
    change.isr = tuple(each for each in before.isr if each != gone)
    record = change.record()
    after = before if record is None else changed(before, record)
    assert after.leader == NO_NODE or (after.leader in active and after.leader in after.isr), "C1"
    assert set(after.isr) <= set(after.replicas)
    assert not set(after.isr) & set(after.elr)
    assert after.isr or elr
    if elr and election is not ElectionKind.UNCLEAN and after.recovery == 0:
        held = {*before.isr, *before.elr}
        assert {*after.isr, *after.elr} <= held, "only who held everything may be elected"
        if len(change.isr) < min_isr:
            assert {*after.isr, *after.elr} == held - ({gone} - held), "and nobody who did is forgotten"
    if after.leader != before.leader:
        assert after.leader_epoch == before.leader_epoch + 1
    if election is not ElectionKind.UNCLEAN and after.leader not in (NO_NODE, before.leader) and after.recovery == 0:
        assert after.leader in before.isr or after.leader in before.elr, "C9"
