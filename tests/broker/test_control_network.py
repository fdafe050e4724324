"""KIP-380 over sockets: our controllers tell members by control requests what they lead, and these are no other process
than the one that is meant. Each test names the sentence that it shows."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fastquorum import sync
from fastquorum.broker import State, View
from fastquorum.broker.settings import FEATURES
from fastquorum.errors import ConfigError, NotAdmitted
from fastquorum.types import Endpoint, Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.brokers import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from fastquorum.wire.messages.inter_broker import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from tests.api.nodes import CLUSTER_ID, WAIT_S, Trio
from tests.broker.clusters import (
    ask,
    bootstrap_of,
    controller_of,
    create_topic,
    is_fenced,
    join,
    one_controller,
    seen,
    three_controllers,
)
from tests.process.processes import Event, NodeProcess

pytestmark = pytest.mark.timeout(180)
OPTIONS: dict[str, Any] = {"control_requests": True, "host": "127.0.0.1", "port": 0}
VERSIONS = {LeaderAndIsrRequest: 2, UpdateMetadataRequest: 5, StopReplicaRequest: 1}


def join_pushed(bootstrap: str, broker_id: int, **options: Any) -> sync.Membership:
    """Return a member that receives control requests at its own port."""
    return join(bootstrap, broker_id, **OPTIONS, **options)


@contextmanager
def three_pushed(root: Path, **options: Any) -> Iterator[tuple[Trio, list[sync.Membership]]]:
    """Yield three controllers, and three members to which they push metadata."""
    with (
        three_controllers(root, older_brokers=True, **options) as nodes,
        join_pushed(bootstrap_of(nodes), 7, **options) as seven,
        join_pushed(bootstrap_of(nodes), 8, **options) as eight,
        join_pushed(bootstrap_of(nodes), 9, **options) as nine,
    ):
        members = [seven, eight, nine]
        for each in members:
            each.wait_active(WAIT_S)
        yield nodes, members


def held(view: View) -> tuple[list[str], list[str]]:
    """What it leads, and what it follows."""
    assert view.told is not None
    topics: dict[bool, list[str]] = {True: [], False: []}
    for _, each in sorted(view.told.held.items()):
        topics[each.is_leader].append(each.topic)
    return topics[True], topics[False]


def knows(member: sync.Membership, leads: list[str], follows: list[str]) -> View:
    """The first view in which it holds just this."""
    return seen(member, lambda view: held(view) == (leads, follows))


def epoch_of(view: View) -> int:
    """The controller's, whom it heard last."""
    assert view.told is not None
    return view.told.controller_epoch


def port_of(member: sync.Membership) -> Endpoint:
    (listener,) = member.listeners
    return Endpoint(listener.name, listener.host, listener.port)


def stop_of(topic: str, broker_epoch: int, controller_epoch: int) -> StopReplicaRequest:
    named = StopReplicaRequest.StopReplicaTopicV1(name=topic, partition_indexes=[0])
    return StopReplicaRequest(
        controller_id=1,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        delete_partitions=True,
        topics=[named],
    )


def unregister(bootstrap: str, broker_id: int) -> None:
    answer = ask(controller_of(bootstrap), UnregisterBrokerRequest(broker_id=broker_id), 0)
    assert isinstance(answer, UnregisterBrokerResponse)
    assert answer.error_code == ErrorCode.NONE


def register(bootstrap: str, broker_id: int) -> int:
    """Another process, of which nothing more is heard; its epoch."""
    feature = BrokerRegistrationRequest.Feature
    request = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=Uuid(b"another process!"),
        features=[
            feature(name=each.name, min_supported_version=each.level_min, max_supported_version=each.level_max)
            for each in FEATURES
        ],
        log_dirs=[Uuid(b"its directories!")],
    )
    answer = ask(controller_of(bootstrap), request, 4)
    assert isinstance(answer, BrokerRegistrationResponse)
    assert answer.error_code == ErrorCode.NONE
    return answer.broker_epoch


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_each_learns_what_it_leads_and_nobody_reads_the_log(tmp_path: Path, kernels: str) -> None:
    with three_pushed(tmp_path, kernels=kernels) as (nodes, (seven, eight, nine)):
        bootstrap = bootstrap_of(nodes)
        create_topic(bootstrap, "a", 7, 8)
        create_topic(bootstrap, "b", 8, 9)
        create_topic(bootstrap, "c", 9, 7)
        knows(seven, ["a"], ["c"])
        knows(eight, ["b"], ["a"])
        view = knows(nine, ["c"], ["b"])
        assert view.told is not None
        assert view.told.controller_id == nodes.leader.node_id
        assert [(each.id, each.listeners) for each in view.told.brokers] == [
            (each.broker_id, each.listeners) for each in (seven, eight, nine)
        ]
        assert (nine.metadata_offset, len(nine.image.brokers)) == (-1, 0)
        assert [(each.topic, each.is_leader) for each in nine.partitions()] == [("b", False), ("c", True)]
        everything = {"a": 7, "b": 8, "c": 9}
        for each in (seven, eight, nine):
            last = seen(each, lambda view: view.told is not None and len(view.told.partitions) == 3).told
            assert last is not None
            assert {key.topic: partition.leader for key, partition in last.partitions.items()} == everything


@contextmanager
def program(root: Path, bootstrap: str) -> Iterator[NodeProcess]:
    """Broker 7 in a process of its own, which is told."""
    process = NodeProcess(7, [bootstrap, "7", "told"], errors=root / "stderr", module="tests.broker.program")
    try:
        yield process
    finally:
        process.close()


def says_it_leads(process: NodeProcess, *topics: str) -> Event:
    leads = [f"{topic}-0" for topic in topics]
    return process.wait(lambda each: each["event"] == "told" and each["leads"] == leads)


def now_held(process: NodeProcess) -> Event:
    before = len(process.events)
    process.tell("held")
    return process.wait_event("held", after=before)


def test_a_killed_broker_comes_back_and_refuses_what_its_former_run_was_to_do(tmp_path: Path) -> None:
    """ "If a broker bounces ... the bounced broker may accidentally process its earlier generation's StopReplicaRequest
    sent from the active controller"."""
    with (
        three_controllers(tmp_path, older_brokers=True) as nodes,
        join_pushed(bootstrap_of(nodes), 8) as eight,
    ):
        bootstrap = bootstrap_of(nodes)
        with program(tmp_path, bootstrap) as process:
            former = process.wait_event("active")["epoch"]
            eight.wait_active(WAIT_S)
            create_topic(bootstrap, "alone", 7)
            create_topic(bootstrap, "shared", 7, 8)
            says_it_leads(process, "alone", "shared")
            knows(eight, [], ["shared"])
            process.kill()
            knows(eight, ["shared"], [])
        with program(tmp_path, bootstrap) as process:
            active = process.wait_event("active")
            assert active["epoch"] > former
            says_it_leads(process, "alone")
            last = eight.view.told
            assert last is not None
            at, epoch = Endpoint("PLAINTEXT", "127.0.0.1", active["ports"][0]), last.controller_epoch
            refused = ask(at, stop_of("alone", former, epoch), 1)
            assert isinstance(refused, StopReplicaResponse)
            assert (refused.error_code, refused.partition_errors) == (ErrorCode.STALE_BROKER_EPOCH, [])
            assert now_held(process)["leads"] == ["alone-0"], "it goes on with it"
            meant = ask(at, stop_of("alone", active["epoch"], epoch), 1)
            assert isinstance(meant, StopReplicaResponse)
            assert meant.error_code == ErrorCode.NONE
            assert now_held(process)["leads"] == [], "the same for this run is done"


@pytest.mark.parametrize("kind", [LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest])
def test_a_request_for_a_former_generation_is_refused_and_nothing_comes_of_it(
    tmp_path: Path, kind: type[LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest]
) -> None:
    """ "...with outdated broker epoch, it will respond back with STALE_BROKER_EPOCH error." """
    with one_controller(tmp_path, older_brokers=True) as bootstrap, join_pushed(bootstrap, 7) as seven:
        epoch = seven.wait_active(WAIT_S)
        create_topic(bootstrap, "t", 7)
        before = seen(seven, lambda view: view.told is not None and view.told.held and view.told.partitions).told
        assert before is not None
        request = kind(controller_id=1, controller_epoch=before.controller_epoch, broker_epoch=epoch - 1)
        answer = ask(port_of(seven), request, VERSIONS[kind])
        assert isinstance(answer, LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH == 77
        assert seven.view.told == before


def test_a_controlled_shutdown_moves_the_leaders_and_a_stale_one_nothing(tmp_path: Path) -> None:
    """ "Upon receiving ControlledShutdownRequest, controller will check the broker generation ... and will reject the
    request if its broker generation is smaller than the broker generation cached in the controller side." """

    def shut_down(bootstrap: str, broker_epoch: int) -> ControlledShutdownResponse:
        request = ControlledShutdownRequest(broker_id=7, broker_epoch=broker_epoch)
        answer = ask(controller_of(bootstrap), request, 2)
        assert isinstance(answer, ControlledShutdownResponse)
        return answer

    with three_pushed(tmp_path) as (nodes, (seven, eight, _)):
        bootstrap, epoch = bootstrap_of(nodes), seven.epoch
        create_topic(bootstrap, "t", 7, 8)
        knows(seven, ["t"], [])
        assert shut_down(bootstrap, epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH
        create_topic(bootstrap, "later", 7)  # what came of the shutdown would be told before it
        knows(seven, ["later", "t"], [])
        moved = shut_down(bootstrap, epoch)
        assert moved.error_code == ErrorCode.NONE
        assert [each.topic_name for each in moved.remaining_partitions] == ["later"], "nobody else has that"
        knows(eight, ["t"], [])
        seen(seven, lambda view: "t" not in held(view)[0])
        assert seven.state is State.ONLINE, "it has not gone yet"


def test_told_to_go_it_hands_over_and_is_fenced(tmp_path: Path) -> None:
    with (
        three_pushed(tmp_path) as (nodes, (seven, eight, _)),
        join(bootstrap_of(nodes), 6) as watcher,
    ):
        create_topic(bootstrap_of(nodes), "t", 7, 8)
        knows(seven, ["t"], [])
        seven.close()
        assert (seven.state, seven.view.reason) == (State.GONE, "let go by the controller")
        knows(eight, ["t"], [])
        seen(watcher, lambda view: is_fenced(view, 7))
        gone = seen(eight, lambda view: view.told is not None and 7 not in [each.id for each in view.told.brokers])
        assert gone.told is not None


def test_one_that_lost_its_place_while_it_shuts_down_asks_again_with_its_new_generation(tmp_path: Path) -> None:
    """ "If the broker just gets disconnected ... and re-connect during controlled shutdown, it will retry to send the
    ControlledShutdownRequest with newer broker epoch to controller." """
    long = {"session_timeout_us": 900_000_000}  # it is not to hear of its loss by a heartbeat, however slow all is
    with one_controller(tmp_path, older_brokers=True, **long) as bootstrap:
        for _ in range(5):
            seven = join(bootstrap, 7, **OPTIONS, **long, heartbeat_interval_us=600_000_000)
            former = seven.wait_active(WAIT_S)
            unregister(bootstrap, 7)
            between = register(bootstrap, 7)
            seven.request_stop(WAIT_S)
            seen(seven, lambda view: view.state in (State.REGISTERING, State.GONE))
            assert seven.epoch == former
            unregister(bootstrap, 7)
            seven.close(WAIT_S)
            if seven.view.reason != "asked to stop":
                break  # else a heartbeat that was under way when it began told it before it was to stop: once more
        assert (seven.state, seven.view.reason) == (State.GONE, "let go by the controller")
        assert seven.epoch > between > former


def test_the_next_controller_tells_everything_again(tmp_path: Path) -> None:
    with three_pushed(tmp_path) as (nodes, (seven, eight, nine)):
        create_topic(bootstrap_of(nodes), "a", 7, 8)
        before = {each.broker_id: each.epoch for each in (seven, eight, nine)}
        first = knows(seven, ["a"], []).told
        assert first is not None
        nodes.crash(nodes.leader.node_id)
        for each, leads, follows in ((seven, ["a"], []), (eight, [], ["a"]), (nine, [], [])):
            view = seen(each, lambda view: epoch_of(view) > first.controller_epoch)
            assert view.told is not None
            assert view.told.controller_id == nodes.leader.node_id
            knows(each, leads, follows)
        create_topic(bootstrap_of(nodes), "b", 9, 7)
        knows(nine, ["b"], [])
        knows(seven, ["a"], ["b"])
        for each in (seven, eight, nine):
            assert each.wait_active(WAIT_S) == before[each.broker_id], "they are what they were"


def test_without_controllers_it_fences_itself_and_comes_back_with_them(tmp_path: Path) -> None:
    with three_pushed(tmp_path) as (nodes, (seven, *_)):
        create_topic(bootstrap_of(nodes), "t", 7)
        knows(seven, ["t"], [])
        for node_id in list(nodes.nodes):
            nodes.crash(node_id)
        seen(seven, lambda view: view.state is State.FENCED)
        assert not seven.is_active
        nodes.open(1, 2, 3)
        assert seven.wait_active(WAIT_S) == seven.epoch
        create_topic(bootstrap_of(nodes), "u", 7)
        knows(seven, ["t", "u"], [])


def test_strangers_at_its_port_do_not_keep_the_controller_out(tmp_path: Path) -> None:
    with one_controller(tmp_path, older_brokers=True) as bootstrap, join_pushed(bootstrap, 7) as seven:
        seven.wait_active(WAIT_S)
        at = port_of(seven)
        strangers = [socket.create_connection((at.host, at.port), WAIT_S) for _ in range(40)]
        strangers[-1].sendall(b"\x00\x00\x00\x04what")
        assert strangers[-1].recv(1) == b"", "whoever speaks of something else is hung up on"
        create_topic(bootstrap, "t", 7)
        knows(seven, ["t"], [])
        for each in strangers:
            each.close()


def test_a_controller_that_was_not_told_to_tells_nothing(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join_pushed(bootstrap, 7) as seven:
        with pytest.raises(NotAdmitted):
            seven.wait_active(2.0)
        assert seven.view.told is not None
        assert (seven.state, seven.view.told.controller_id) == (State.FENCED, -1)
        assert seven.epoch >= 0, "it is registered, as anybody may be"


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({}, "host"),
        ({"host": "127.0.0.1"}, "port"),
        ({"host": "127.0.0.1", "port": -1}, "port"),
        ({"host": "192.0.2.1", "port": 0}, "port"),
    ],
)
def test_it_needs_an_address_to_listen_at(options: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        join("127.0.0.1:9", 7, control_requests=True, **options)
    assert refused.value.key == key
