"""APIs that no Kafka of today offers: laid out as their KIPs say, and never offered by us unasked."""

from fastquorum.kernels.pure.lane.context import CORRELATION_FIRST
from fastquorum.node.clients import server as client_apis
from fastquorum.wire import API, ApiKey, Message, decode, encode, layout
from fastquorum.wire.messages.controller_heartbeat import (
    BrokerState,
    IsrChangeRequest,
    IsrChangeResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from fastquorum.wire.messages.inter_broker import (
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)

KIP_380 = {
    ApiKey.LEADER_AND_ISR: "2",
    ApiKey.STOP_REPLICA: "1",
    ApiKey.UPDATE_METADATA: "5",
    ApiKey.CONTROLLED_SHUTDOWN: "2",
}
CONTROLLER = ["controller_id int32", "controller_epoch int32", "broker_epoch int64"]
PARTITION_STATES = [
    "topic_states []",
    ".topic_name string",
    ".partition_states []",
    "..partition_index int32",
    "..controller_epoch int32",
    "..leader int32",
    "..leader_epoch int32",
    "..isr []int32",
]
"""What LeaderAndIsr and UpdateMetadata begin a partition with."""
KIP_343 = {ApiKey.METADATA_HEARTBEAT: "0", ApiKey.ISR_CHANGE: "0"}


def fields(cls: type[Message], version: int) -> list[str]:
    """Every field in wire order: its depth as dots, name, type (structs have none), `?` where null is allowed."""
    found = []
    for each in layout(cls, version):
        name = each.path.rpartition(".")[2].removesuffix("[]")
        kind = "[]" if each.type.startswith("[]") and each.size == 0 else each.type
        found.append(f"{'.' * each.depth}{name} {kind}{'?' if each.nullable else ''}")
    return found


def test_the_versions_are_the_kips() -> None:
    assert {key: str(API[key].versions) for key in {**KIP_380, **KIP_343}} == {**KIP_380, **KIP_343}


def test_they_are_the_only_ones_that_are_not_advertised() -> None:
    assert {api.key for api in API.values() if not api.is_advertised} == {*KIP_380, *KIP_343}


def test_api_versions_leaves_them_out_even_where_they_are_served() -> None:
    offered = {each.api_key for each in client_apis.api_versions().api_keys}
    assert offered == set(client_apis.SERVED)
    offered = {each.api_key for each in client_apis.api_versions(served=tuple(API)).api_keys}
    assert offered == API.keys() - {*KIP_380, *KIP_343}


def test_private_keys_are_nobody_elses() -> None:
    kafkas = [key for key in ApiKey if key not in KIP_343]
    assert max(kafkas) == 92
    assert all(1_000 < key < 10_000 for key in KIP_343)


def test_no_request_looks_like_an_answer_to_the_lane() -> None:
    assert max(ApiKey) << 16 | 0xFFFF < CORRELATION_FIRST


def test_a_metadata_heartbeat_is_laid_out_as_in_kip_343() -> None:
    assert fields(MetadataHeartbeatRequest, 0) == ["broker_id int32", "incarnation_id int64", "target_state int8"]
    assert fields(MetadataHeartbeatResponse, 0) == ["error_code int16", "error_string string?", "current_state int8"]
    request = MetadataHeartbeatRequest(broker_id=1, incarnation_id=2, target_state=BrokerState.STOPPING)
    assert encode(request, 0) == bytes.fromhex("00000001 0000000000000002 03")
    answered = MetadataHeartbeatResponse(error_code=77, error_string=None, current_state=BrokerState.INACTIVE)
    assert encode(answered, 0) == bytes.fromhex("004d ffff 01")
    assert [state.name for state in BrokerState] == ["INITIAL", "INACTIVE", "ACTIVE", "STOPPING"]


def test_an_isr_change_is_laid_out_as_in_kip_343() -> None:
    assert fields(IsrChangeRequest, 0) == [
        "broker_id int32",
        "incarnation_id int64",
        "topics []",
        ".topic_name string",
        ".partitions []",
        "..leader_epoch int32",
        "..partition_index int32",
        "..isr_nodes []int32",
    ]
    assert fields(IsrChangeResponse, 0) == [
        "top_level_error_code int16",
        "top_level_error_message string?",
        "results []",
        ".error_code int16",
        ".error_message string?",
    ]
    topic = IsrChangeRequest.Topic
    partition = topic.Partition(leader_epoch=5, partition_index=7, isr_nodes=[1, 3])
    request = IsrChangeRequest(broker_id=1, incarnation_id=2, topics=[topic(topic_name="t", partitions=[partition])])
    raw = bytes.fromhex(
        "00000001 0000000000000002 00000001 0001 74 00000001 00000005 00000007 00000002 00000001 00000003"
    )
    assert encode(request, 0) == raw
    assert decode(IsrChangeRequest, 0, raw) == request
    answered = IsrChangeResponse(results=[IsrChangeResponse.Result(error_code=6, error_message="no")])
    assert encode(answered, 0) == bytes.fromhex("0000 ffff 00000001 0006 0002 6e6f")


def test_leader_and_isr_is_laid_out_as_in_kip_380() -> None:
    assert fields(LeaderAndIsrRequest, 2) == [
        *CONTROLLER,
        *PARTITION_STATES,
        "..partition_epoch int32",  # the KIP's zk_version
        "..replicas []int32",
        "..is_new bool",
        "live_leaders []",
        ".broker_id int32",
        ".host_name string",
        ".port int32",
    ]


def test_update_metadata_is_laid_out_as_in_kip_380() -> None:
    assert fields(UpdateMetadataRequest, 5) == [
        *CONTROLLER,
        *PARTITION_STATES,
        "..zk_version int32",
        "..replicas []int32",
        "..offline_replicas []int32",
        "live_brokers []",
        ".id int32",
        ".endpoints []",
        "..port int32",
        "..host string",
        "..listener string",
        "..security_protocol int16",
        ".rack string?",
    ]


def test_stop_replica_and_controlled_shutdown_are_laid_out_as_in_kip_380() -> None:
    assert fields(StopReplicaRequest, 1) == [
        *CONTROLLER,
        "delete_partitions bool",
        "topics []",
        ".name string",
        ".partition_indexes []int32",
    ]
    assert fields(ControlledShutdownRequest, 2) == ["broker_id int32", "broker_epoch int64"]
