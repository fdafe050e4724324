"""The client where it matters: what it knows after a failure, and how it finds out what it does not know."""

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from fastquorum.cli.demo.appender import Acknowledged, Appender
from fastquorum.cli.quorum import describe as quorum_describe
from fastquorum.client.connection import Connection, Deadline, NoAnswer, NotSent
from fastquorum.client.quorum import QuorumClient
from fastquorum.client.refusals import OutcomeUnknown
from fastquorum.errors import FatalError, FrameError, NotReady, Overloaded, UsageError
from fastquorum.kernels import Record, load
from fastquorum.types import LISTENER_NAME, Endpoint, Epoch, Offset, Uuid
from fastquorum.wire import ApiKey, ErrorCode, Message, encode_response
from fastquorum.wire.messages.cluster import DescribeClusterResponse
from fastquorum.wire.messages.handshake import ApiVersionsRequest
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse

PARTITION = DescribeQuorumResponse.TopicData.PartitionData
UNKNOWN = OutcomeUnknown("it closed the connection", is_sealed=True)


# --- one connection ---------------------------------------------------------------------------------------------------


class Server:
    """Accepts one connection, reads the request, and does as told."""

    def __init__(self, answer: bytes | None, *, closes: bool) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = Endpoint(LISTENER_NAME, "127.0.0.1", self._listening.getsockname()[1])
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(answer, closes))
        self._thread.start()

    def _serve(self, answer: bytes | None, closes: bool) -> None:
        connection, _ = self._listening.accept()
        with connection:
            connection.recv(1 << 16)
            if answer is not None:
                connection.sendall(answer)
            if not closes:
                self._over.wait(10)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._listening.close()


@pytest.mark.parametrize(
    ("answer", "closes", "is_sealed"),
    [(None, True, True), (b"\0\0", True, True), (None, False, False), (struct.pack(">i", 100), False, False)],
    ids=["closed", "closed inside the answer", "silent", "silent inside the answer"],
)
def test_only_a_closed_connection_seals_a_request(answer: bytes | None, closes: bool, is_sealed: bool) -> None:
    server = Server(answer, closes=closes)
    connection = Connection(server.endpoint, Deadline(5))
    with pytest.raises(NoAnswer) as raised:
        connection.request(ApiVersionsRequest(), 0, Deadline(0.2))
    assert raised.value.is_sealed is is_sealed
    server.close()


@pytest.mark.parametrize("length", [-1, 2**31 - 1])
def test_an_absurd_length_is_refused_at_once(length: int) -> None:
    server = Server(struct.pack(">i", length), closes=False)
    connection = Connection(server.endpoint, Deadline(5))
    with pytest.raises(FrameError):
        connection.request(ApiVersionsRequest(), 0, Deadline(5))
    server.close()


def test_nobody_there_is_certain_not_to_have_acted() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(NotSent):
            Connection(Endpoint(LISTENER_NAME, "127.0.0.1", held.getsockname()[1]), Deadline(1))


def test_a_broker_is_told_from_a_controller() -> None:
    refusal = DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message="brokers only")
    frame = encode_response(1, ApiKey.DESCRIBE_CLUSTER, 1, refusal)
    server = Server(struct.pack(">i", len(frame)) + frame, closes=False)
    with (
        QuorumClient([server.endpoint], load("pure")) as client,
        pytest.raises(UsageError, match="is a broker; name controllers"),
    ):
        client.controller(Deadline(5))
    server.close()


class CutShort(QuorumClient):
    """Its server knows no leader; asked again, it says nothing while there is time."""

    requests = 0

    def ask(
        self, endpoint: Endpoint, request: Message, version: int, response_type: type, deadline: Deadline, *_: float
    ) -> Any:
        self.requests += 1
        if self.requests == 1:
            return DescribeClusterResponse(controller_id=-1)
        while deadline.left_s > 0:
            threading.Event().wait(deadline.left_s)
        raise NoAnswer(endpoint, "nothing in time", is_sealed=False)


def test_a_search_that_is_cut_short_says_what_it_had_heard() -> None:
    """With next to no time left nobody can answer: that nobody did is not what is wrong."""
    with (
        CutShort([Endpoint(LISTENER_NAME, "h", 1)], load("pure")) as client,
        pytest.raises(NotReady, match="h:1 knows no leader"),
    ):
        client.controller(Deadline(0.1))
    assert client.requests == 2


# --- settling an append -----------------------------------------------------------------------------------------------


class ScriptedClient:
    """A quorum of one list. Each append does the next thing in `script`: None is success, an error is raised, and
    `kept` tells whether the record got into the log all the same.
    """

    def __init__(self, script: Sequence[tuple[Exception | None, bool]]) -> None:
        self.script = list(script)
        self.log: list[bytes] = []
        self.barriers = 0

    def append(self, values: Sequence[bytes], deadline: Deadline, *, commit_timeout_s: float | None = None) -> Offset:
        error, is_kept = self.script.pop(0) if self.script else (None, True)
        if is_kept:
            self.log.extend(values)
        if error is not None:
            raise error
        return len(self.log) - 1

    def barrier(self, deadline: Deadline) -> Offset:
        self.barriers += 1
        return len(self.log)

    def read_all(self, offset: Offset, end_offset: Offset, deadline: Deadline) -> Iterator[tuple[Epoch, Record]]:
        for at in range(offset, end_offset):
            yield 1, Record(self.log[at], offset=at)


def append_all(client: ScriptedClient, values: Sequence[bytes]) -> Appender:
    appender = Appender(cast(QuorumClient, client), Deadline(5))
    for value in values:
        appender.append(value)
    return appender


SAME = [b"no-op", b"no-op", b"no-op"]
"""Records that are alike, as a metadata log's are: only their place tells them apart."""


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("is_kept", [True, False])
def test_an_append_of_unknown_outcome_is_neither_lost_nor_doubled(at: int, is_kept: bool) -> None:
    client = ScriptedClient([(None, True)] * at + [(UNKNOWN, is_kept)])
    appender = append_all(client, SAME)
    assert client.log == SAME
    assert appender.ledger == [Acknowledged(offset, b"no-op") for offset in range(3)]
    assert (appender.settled, client.barriers) == (1, 1)


def test_several_failures_in_a_row() -> None:
    client = ScriptedClient([(UNKNOWN, False), (Overloaded("full"), False), (UNKNOWN, False), (UNKNOWN, True)])
    appender = append_all(client, SAME)
    assert client.log == SAME
    assert appender.settled == 3


def test_what_a_node_may_still_act_on_cannot_be_settled() -> None:
    client = ScriptedClient([(OutcomeUnknown("silence", is_sealed=False), False)])
    with pytest.raises(OutcomeUnknown):
        append_all(client, SAME)
    assert client.barriers == 0


def test_somebody_elses_records_are_not_taken_for_ours() -> None:
    client = ScriptedClient([(UNKNOWN, False)])
    client.log = [b"another"]
    with pytest.raises(FatalError):
        append_all(client, SAME)


# --- the barrier ------------------------------------------------------------------------------------------------------


class DescribedClient(QuorumClient):
    """Its quorum is described by a script; the last description repeats."""

    def __init__(self, script: Sequence[DescribeQuorumResponse]) -> None:
        super().__init__([], load("pure"))
        self.script = list(script)
        self.requests = 0

    def describe(self, deadline: Deadline) -> DescribeQuorumResponse:
        self.requests += 1
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def described(
    epoch: int, high_watermark: int, ends: tuple[int, ...], ages_ms: tuple[int, ...], now_ms: int = 1_000_000
) -> DescribeQuorumResponse:
    """Voter 1 leads; `ages_ms` is how long ago each voter fetched, -1 never."""
    rows = [
        PARTITION.ReplicaState(
            replica_id=number, log_end_offset=end, last_fetch_timestamp=now_ms - age if age >= 0 else -1
        )
        for number, (end, age) in enumerate(zip(ends, ages_ms, strict=True), 1)
    ]
    partition = PARTITION(leader_id=1, leader_epoch=epoch, high_watermark=high_watermark, current_voters=rows)
    return DescribeQuorumResponse(topics=[DescribeQuorumResponse.TopicData(partitions=[partition])])


def test_a_barrier_wants_two_contacts_with_a_majority_after_it_began() -> None:
    client = DescribedClient([described(1, 10, (10, 10, 10), (0, 0, 500))])
    assert client.barrier(Deadline(5)) == 10
    assert client.requests >= 3


@pytest.mark.parametrize(
    "stuck",
    [
        described(1, 10, (10, 10, 10), (0, 9_000, 9_000)),
        described(1, 10, (10, 10, 10), (0, -1, -1)),
        described(1, 9, (10, 10, 10), (0, 0, 0)),
    ],
    ids=["contacts before it began", "no contact ever", "log end not committed"],
)
def test_a_barrier_does_not_believe_a_leader_without_a_majority(stuck: DescribeQuorumResponse) -> None:
    with pytest.raises(NotReady):
        DescribedClient([stuck]).barrier(Deadline(0.3))


def test_a_barrier_begins_anew_under_a_new_leader() -> None:
    fresh = (0, 0, 0)
    client = DescribedClient([described(1, 10, (10, 10, 10), fresh), described(2, 12, (12, 12, 12), fresh)])
    assert client.barrier(Deadline(5)) == 12


def test_a_quorum_of_one_is_its_own_majority() -> None:
    assert DescribedClient([described(1, 3, (3,), (0,))]).barrier(Deadline(5)) == 3


# --- describing -------------------------------------------------------------------------------------------------------


def test_status_and_replication_are_printed_as_kafka_prints_them() -> None:
    directory = Uuid.parse("S894M4jCSCaj8kZJOBDuoA")
    row = PARTITION.ReplicaState
    partition = PARTITION(
        leader_id=2,
        leader_epoch=7,
        high_watermark=26,
        current_voters=[
            row(
                replica_id=1,
                replica_directory_id=directory,
                log_end_offset=20,
                last_fetch_timestamp=990,
                last_caught_up_timestamp=900,
            ),
            row(replica_id=2, log_end_offset=27, last_fetch_timestamp=1000, last_caught_up_timestamp=1000),
        ],
        observers=[row(replica_id=11, log_end_offset=26, last_fetch_timestamp=-1, last_caught_up_timestamp=-1)],
    )
    node = DescribeQuorumResponse.Node
    response = DescribeQuorumResponse(
        topics=[DescribeQuorumResponse.TopicData(partitions=[partition])],
        nodes=[
            node(node_id=1, listeners=[node.Listener(name="CONTROLLER", host="127.0.0.1", port=39091)]),
            node(node_id=2, listeners=[node.Listener(name="CONTROLLER", host="::1", port=39092)]),
        ],
    )
    assert quorum_describe.status_text(response, "nR4bhG2JR8mYNL7GDwOfYA") == (
        "ClusterId:              nR4bhG2JR8mYNL7GDwOfYA\n"
        "LeaderId:               2\n"
        "LeaderEpoch:            7\n"
        "HighWatermark:          26\n"
        "MaxFollowerLag:         7\n"
        "MaxFollowerLagTimeMs:   100\n"
        'CurrentVoters:          [{"id": 1, "directoryId": "S894M4jCSCaj8kZJOBDuoA", '
        '"endpoints": ["CONTROLLER://127.0.0.1:39091"]}, {"id": 2, "endpoints": ["CONTROLLER://[::1]:39092"]}]\n'
        'CurrentObservers:       [{"id": 11}]'
    )
    zero = "A" * 22
    assert quorum_describe.replication_text(response, None) == (
        "NodeId\tDirectoryId           \tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus  \t\n"
        f"2     \t{zero}\t27          \t0  \t1000              \t1000                 \tLeader  \t\n"
        "1     \tS894M4jCSCaj8kZJOBDuoA\t20          \t7  \t990               \t900                  \tFollower\t\n"
        f"11    \t{zero}\t26          \t1  \t-1                \t-1                   \tObserver\t\n"
    )
    human = quorum_describe.replication_text(response, 1004).splitlines()
    assert human[2].split("\t")[4:6] == ["14 ms ago         ", "104 ms ago           "]
    assert human[3].split("\t")[4:6] == ["-1                ", "-1                   "]
