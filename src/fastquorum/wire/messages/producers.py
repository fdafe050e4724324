"""Producer ids: InitProducerId for clients, AllocateProducerIds for brokers; FindCoordinator.

Source: KIP-98, KIP-360, KIP-730; KIP-699 (several keys).
"""

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT8, INT16, INT32, INT64, STRING, array, field


class InitProducerIdRequest(Message, api_key=22, kind="request", versions="0-6", flexible="2+"):
    """A producer asks for its id and epoch."""

    transactional_id: str | None = field(STRING, "0+", nullable="0+")
    transaction_timeout_ms: int = field(INT32, "0+")
    producer_id: int = field(INT64, "3+", default=-1)
    producer_epoch: int = field(INT16, "3+", default=-1)
    enable2_pc: bool = field(BOOL, "6+")
    keep_prepared_txn: bool = field(BOOL, "6+")


class InitProducerIdResponse(Message, api_key=22, kind="response", versions="0-6", flexible="2+"):
    """The id and epoch."""

    throttle_time_ms: int = field(INT32, "0+", ignorable=True)
    error_code: int = field(INT16, "0+")
    producer_id: int = field(INT64, "0+", default=-1)
    producer_epoch: int = field(INT16, "0+")
    ongoing_txn_producer_id: int = field(INT64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = field(INT16, "6+", default=-1)


class AllocateProducerIdsRequest(Message, api_key=67, kind="request", versions="0", flexible="0+"):
    """A broker asks the controller for a block of ids."""

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+", default=-1)


class AllocateProducerIdsResponse(Message, api_key=67, kind="response", versions="0", flexible="0+"):
    """The block: first id and length."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    producer_id_start: int = field(INT64, "0+")
    producer_id_len: int = field(INT32, "0+")


class FindCoordinatorRequest(Message, api_key=10, kind="request", versions="0-6", flexible="3+"):
    """A request for the coordinator of a group or a transaction."""

    key: str = field(STRING, "0-3")
    key_type: int = field(INT8, "1+")
    coordinator_keys: list[str] = field(array(STRING), "4+")


class FindCoordinatorResponse(Message, api_key=10, kind="response", versions="0-6", flexible="3+"):
    """The coordinator; one a key from version 4 on."""

    class Coordinator(Struct):
        key: str = field(STRING, "4+")
        node_id: int = field(INT32, "4+")
        host: str = field(STRING, "4+")
        port: int = field(INT32, "4+")
        error_code: int = field(INT16, "4+")
        error_message: str | None = field(STRING, "4+", nullable="4+", ignorable=True)

    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0-3")
    error_message: str | None = field(STRING, "1-3", nullable="1-3", ignorable=True)
    node_id: int = field(INT32, "0-3")
    host: str = field(STRING, "0-3")
    port: int = field(INT32, "0-3")
    coordinators: list[Coordinator] = field(array(Coordinator), "4+")
