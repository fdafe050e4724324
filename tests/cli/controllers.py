"""Controllers in this process for the commands to talk to, and brokers that say what brokers say."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fastquorum import sync
from fastquorum.client.connection import Connection, Deadline
from fastquorum.loopback import free_ports
from fastquorum.types import LISTENER_NAME, Endpoint, Uuid
from fastquorum.wire import Message
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S
from tests.cli.conftest import Ran, wait_until

Run = Callable[..., Ran]
M = TypeVar("M", bound=Message)


FEATURES = (
    ("metadata.version", 7, 30),
    ("kraft.version", 0, 1),
    ("eligible.leader.replicas.version", 0, 1),
    ("group.version", 0, 1),
    ("share.version", 0, 1),
    ("streams.version", 0, 1),
    ("transaction.version", 0, 2),
)
"""What a broker of Kafka 4.3 supports."""


class ControllerClient:
    """A client of one controller, with the requests of brokers."""

    def __init__(self, port: int, cluster_id: str = CLUSTER_ID) -> None:
        self.address = f"127.0.0.1:{port}"
        self.cluster_id = cluster_id
        self.at = ("--bootstrap", self.address)
        self._endpoint = Endpoint(LISTENER_NAME, "127.0.0.1", port)

    def ask(self, request: Message, version: int, response: type[M]) -> M:
        connection = Connection(self._endpoint, Deadline(WAIT_S))
        try:
            answer = connection.request(request, version, Deadline(WAIT_S))
        finally:
            connection.close()
        assert isinstance(answer, response)
        return answer

    def register(self, broker_id: int) -> int:
        """A broker registers, fenced; its epoch."""
        feature = BrokerRegistrationRequest.Feature
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self.cluster_id,
            incarnation_id=Uuid(bytes([broker_id]) * 16),
            listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host=f"b{broker_id}", port=9092)],
            features=[
                feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, low, high in FEATURES
            ],
            rack=f"r{broker_id}",
            log_dirs=[Uuid(bytes([100 + broker_id]) * 16)],
        )
        answer = self.ask(request, 4, BrokerRegistrationResponse)
        assert answer.error_code == 0
        return answer.broker_epoch

    def beat(self, broker_id: int, epoch: int, **fields: Any) -> BrokerHeartbeatResponse:
        fields.setdefault("current_metadata_offset", epoch)  # its registration
        request = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, **fields)
        answer = self.ask(request, 1, BrokerHeartbeatResponse)
        assert answer.error_code == 0
        return answer

    def join(self, *broker_ids: int) -> dict[int, int]:
        """Brokers register and are unfenced; their epochs."""
        epochs = {broker_id: self.register(broker_id) for broker_id in broker_ids}
        for broker_id, epoch in epochs.items():
            assert not self.beat(broker_id, epoch).is_fenced
        return epochs


class Controller(ControllerClient):
    """A quorum of one. Its log is still when nothing happens: it appends no no-ops."""

    def __init__(self, quorum: sync.Quorum, port: int) -> None:
        super().__init__(port)
        self.quorum = quorum

    @property
    def end_offset(self) -> int:
        return self.quorum._node.log.end_offset


@contextmanager
def controller(root: Path, port: int | None = None, **options: Any) -> Iterator[Controller]:
    """One that leads, and has registered, if it is one."""
    port = free_ports(1)[0] if port is None else port
    values = {
        **QUICK,
        "node_id": 1,
        "voters": f"1@127.0.0.1:{port}",
        "cluster_id": CLUSTER_ID,
        "log": "metadata",
        "controller": True,
        "idle_us_max": 0,
        "disk_stall_us_max": 60_000_000,
        **options,
    }
    with sync.open(root / "n1", **values) as quorum:
        quorum.wait_ready(WAIT_S)
        role = quorum._node._replica.controller
        if role is not None:
            wait_until(lambda: role.is_registered)
        yield Controller(quorum, port)
