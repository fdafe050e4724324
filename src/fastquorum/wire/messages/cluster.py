"""The cluster as a whole: DescribeCluster, UpdateFeatures, and Envelope, in which brokers forward client requests.

Source: KIP-700, KIP-919 (endpoint type), KIP-1073 (fenced brokers); KIP-584 (features); KIP-590 (envelope).
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, BYTES, INT8, INT16, INT32, STRING, array, field


class DescribeClusterRequest(Message, api_key=60, kind="request", versions="0-2", flexible="0+"):
    """Ask for brokers (endpoint type 1) or controllers (2)."""

    include_cluster_authorized_operations: bool = field(BOOL, "0+")
    endpoint_type: int = field(INT8, "1+", default=1)
    include_fenced_brokers: bool = field(BOOL, "2+")


class DescribeClusterResponse(Message, api_key=60, kind="response", versions="0-2", flexible="0+"):
    """The nodes, and who controls."""

    class DescribeClusterBroker(Struct):
        broker_id: int = field(INT32, "0+")
        host: str = field(STRING, "0+")
        port: int = field(INT32, "0+")
        rack: str | None = field(STRING, "0+", nullable="0+", default=None)
        is_fenced: bool = field(BOOL, "2+")

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    endpoint_type: int = field(INT8, "1+", default=1)
    cluster_id: str = field(STRING, "0+")
    controller_id: int = field(INT32, "0+", default=-1)
    brokers: list[DescribeClusterBroker] = field(array(DescribeClusterBroker), "0+")
    cluster_authorized_operations: int = field(INT32, "0+", default=-2147483648)


class UpdateFeaturesRequest(Message, api_key=57, kind="request", versions="0-2", flexible="0+"):
    """Raise or lower finalized feature levels."""

    class FeatureUpdateKey(Struct):
        feature: str = field(STRING, "0+")
        max_version_level: int = field(INT16, "0+")
        allow_downgrade: bool = field(BOOL, "0")
        upgrade_type: int = field(INT8, "1+", default=1)

    timeout_ms: int = field(INT32, "0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = field(array(FeatureUpdateKey), "0+")
    validate_only: bool = field(BOOL, "1+")


class UpdateFeaturesResponse(Message, api_key=57, kind="response", versions="0-2", flexible="0+"):
    """What became of it."""

    class UpdatableFeatureResult(Struct):
        feature: str = field(STRING, "0+")
        error_code: int = field(INT16, "0+")
        error_message: str | None = field(STRING, "0+", nullable="0+")

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    results: list[UpdatableFeatureResult] = field(array(UpdatableFeatureResult), "0-1", ignorable=True)


class EnvelopeRequest(Message, api_key=58, kind="request", versions="0", flexible="0+"):
    """A client's request, header included, and who the client is."""

    request_data: bytes = field(BYTES, "0+")
    request_principal: bytes | None = field(BYTES, "0+", nullable="0+")
    client_host_address: bytes = field(BYTES, "0+")


class EnvelopeResponse(Message, api_key=58, kind="response", versions="0", flexible="0+"):
    """The answer to the inner request, header included."""

    response_data: bytes | None = field(BYTES, "0+", nullable="0+", default=None)
    error_code: int = field(INT16, "0+")


class DefaultPrincipalData(Message, kind="data", versions="0", flexible="0+"):
    """The client's principal inside an envelope, behind an int16 with this message's version."""

    type: str = field(STRING, "0+")
    name: str = field(STRING, "0+")
    token_authenticated: bool = field(BOOL, "0+")
