"""What keeps a quorum and its brokers' sessions alive is looked at before what may wait, and overtakes nothing on its
own connection. KAFKA-15019."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.kernels.codes import EVENT_CONNECTED, EVENT_FRAME, EVENT_LOST, EVENT_SYNCED
from fastquorum.node.io.arrivals import SLICE_BYTES, SLICE_FRAMES, Arrival, Arrivals
from fastquorum.wire import ApiKey

OURS = 99
"""A connection that this node made."""
VOTERS = 98
CONSUMERS = 97


def arrival(connection: int, api: ApiKey, size_bytes: int = 10) -> Arrival:
    return EVENT_FRAME, connection, api.to_bytes(2, "big") + bytes(size_bytes - 2), 0, 0


def event(kind: int, connection: int = 0) -> Arrival:
    return kind, connection, b"", 0, 0


def arrivals(*each: Arrival) -> Arrivals:
    made = Arrivals(lambda connection: connection in (OURS, VOTERS), lambda connection: connection == CONSUMERS)
    made.add(each)
    return made


def test_heartbeats_and_rafts_requests_come_before_what_was_asked_earlier() -> None:
    creation = arrival(1, ApiKey.CREATE_TOPICS)
    urgent = [arrival(2, ApiKey.BROKER_HEARTBEAT), arrival(3, ApiKey.VOTE), arrival(4, ApiKey.METADATA_HEARTBEAT)]
    waiting = arrivals(creation, *urgent)
    assert waiting.take_urgent() == urgent
    assert waiting.take_urgent() == []
    assert waiting.take_others() == [creation]
    assert not waiting


def test_an_answer_of_another_node_is_urgent_whatever_it_begins_with() -> None:
    answer = arrival(OURS, ApiKey.CREATE_TOPICS)
    assert arrivals(arrival(1, ApiKey.CREATE_TOPICS), answer).take_urgent() == [answer]


def test_syncs_and_connections_that_come_and_go_are_urgent() -> None:
    events = [event(EVENT_SYNCED), event(EVENT_CONNECTED, OURS), event(EVENT_LOST, 5)]
    assert arrivals(arrival(1, ApiKey.CREATE_TOPICS), *events).take_urgent() == events


def test_nothing_overtakes_what_came_before_it_on_its_connection() -> None:
    before, beat, end = arrival(1, ApiKey.CREATE_TOPICS), arrival(1, ApiKey.BROKER_HEARTBEAT), event(EVENT_LOST, 1)
    waiting = arrivals(before, beat, end)
    assert waiting.take_urgent() == []
    assert waiting.take_others() == [before]
    assert [*waiting.take_urgent(), *waiting.take_urgent()] == [beat, end], "nothing is before them any more"


def test_a_voters_frames_come_before_all_that_strangers_find_urgent() -> None:
    votes = [arrival(each, ApiKey.VOTE) for each in range(10, 10 + 2 * SLICE_FRAMES)]
    voters = [arrival(VOTERS, ApiKey.FETCH), arrival(VOTERS, ApiKey.API_VERSIONS)]
    waiting = arrivals(*votes, *voters)
    assert waiting.take_urgent()[:2] == voters


def test_questions_about_the_quorum_and_consumers_fetches_may_wait() -> None:
    others = [arrival(1, ApiKey.DESCRIBE_QUORUM), arrival(CONSUMERS, ApiKey.FETCH)]
    first_fetch = arrival(3, ApiKey.FETCH)
    waiting = arrivals(*others, first_fetch)
    assert waiting.take_urgent() == [first_fetch], "it may be a voter's"
    assert waiting.take_others() == others


@pytest.mark.parametrize("api", [ApiKey.DESCRIBE_QUORUM, ApiKey.VOTE])
def test_connections_take_turns_however_much_one_of_them_asks(api: ApiKey) -> None:
    waiting = arrivals(*[arrival(1, api)] * 500, arrival(2, api))
    assert arrival(2, api) in [*waiting.take_urgent(), *waiting.take_others()][:2]


def test_of_what_may_wait_a_slice_is_taken_at_a_time() -> None:
    waiting = arrivals(*[arrival(each, ApiKey.CREATE_TOPICS) for each in range(SLICE_FRAMES + 1)])
    assert len(waiting.take_others()) == SLICE_FRAMES
    assert len(waiting.take_others()) == 1
    large = arrival(1, ApiKey.CREATE_TOPICS, SLICE_BYTES)
    waiting.add([large] * 3)
    assert [waiting.take_others() for _ in range(4)] == [[large], [large], [large], []]


def test_a_connection_that_asks_one_thing_does_not_wait_for_a_crowd_that_asks_many() -> None:
    crowd = range(100, 1_100)
    waiting = arrivals(*[arrival(each, ApiKey.DESCRIBE_CONFIGS) for each in crowd for _ in range(64)])
    for _ in range(len(crowd) // SLICE_FRAMES + 1):
        waiting.take_others()
    waiting.add([arrival(1, ApiKey.DESCRIBE_QUORUM)])
    assert arrival(1, ApiKey.DESCRIBE_QUORUM) in [*waiting.take_others(), *waiting.take_others()]


@pytest.mark.parametrize("size_bytes", [10, SLICE_BYTES])
def test_of_those_that_ask_much_and_those_that_ask_little_neither_waits_for_ever(size_bytes: int) -> None:
    waiting = arrivals(*[arrival(1, ApiKey.METADATA, size_bytes)] * 64)
    waiting.take_others()
    taken = []
    for number in range(100, 100 + 100 * SLICE_FRAMES, SLICE_FRAMES):
        waiting.add([arrival(number + each, ApiKey.METADATA, size_bytes) for each in range(SLICE_FRAMES)])
        taken.append({each[1] for each in waiting.take_others()})
    assert sum(1 in each for each in taken) >= 30
    assert sum(any(number > 1 for number in each) for each in taken) >= 50


def test_at_the_end_all_that_is_left_is_told() -> None:
    left = [event(EVENT_SYNCED), arrival(1, ApiKey.CREATE_TOPICS)]
    waiting = arrivals(*reversed(left))
    assert waiting.take_all() == left
    assert not waiting


EVENTS = st.one_of(
    st.builds(arrival, st.integers(1, 3), st.sampled_from(list(ApiKey)), st.sampled_from([2, 10, SLICE_BYTES])),
    st.builds(event, st.just(EVENT_LOST), st.integers(1, 3)),
)


@given(come=st.lists(EVENTS, max_size=60), turns=st.lists(st.integers(0, 9), max_size=20))
def test_every_arrival_is_taken_once_in_the_order_of_its_connection(come: list[Arrival], turns: list[int]) -> None:
    waiting, taken, left = arrivals(), [], list(come)
    for count in turns:
        waiting.add(left[:count])
        del left[:count]
        taken += [*waiting.take_urgent(), *waiting.take_others()]
    waiting.add(left)
    while waiting:
        while urgent := waiting.take_urgent():
            taken += urgent
        taken += waiting.take_others()
    orders: dict[int, list[Arrival]] = defaultdict(list)
    for each in come:
        orders[each[1]].append(each)
    assert {number: [each for each in taken if each[1] == number] for number in orders} == orders
    assert len(taken) == len(come)
