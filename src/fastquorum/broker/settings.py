"""What a member is started with: who it is, and the numbers it runs by. Plain values; pure.

Names and defaults are Kafka's where Kafka has them. Source: KIP-631 (`broker.heartbeat.interval.ms`,
`broker.session.timeout.ms`), KIP-343 (`broker.heartbeat.timeout.ms`).
"""

from dataclasses import dataclass
from typing import Final

from fastquorum.config import MS, SECOND
from fastquorum.controller.image.features import METADATA_VERSION, METADATA_VERSION_MAX, METADATA_VERSION_MIN
from fastquorum.controller.image.registrations import Feature, Listener
from fastquorum.errors import ConfigError
from fastquorum.lease import LeasePromise, check_lease
from fastquorum.types import Endpoint, Micros, NodeId, Uuid

FEATURES: Final = (
    Feature("eligible.leader.replicas.version", 0, 1),
    Feature("group.version", 0, 1),
    Feature("kraft.version", 0, 1),
    Feature(METADATA_VERSION, METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    Feature("share.version", 0, 1),
    Feature("streams.version", 0, 1),
    Feature("transaction.version", 0, 2),
)
"""What a broker of Kafka 4.3 says it supports: a controller refuses one that does not know what is finalized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """Who a member is. `join` takes the same."""

    broker_id: NodeId
    cluster_id: str
    bootstrap: tuple[Endpoint, ...]
    """Controllers to ask who leads."""
    incarnation_id: Uuid
    """Drawn anew by every process: no two of one broker id are taken for one another."""
    log_dirs: tuple[Uuid, ...]
    """Directory ids, at least one; no other broker of the cluster has any of them."""
    listeners: tuple[Listener, ...] = ()
    rack: str | None = None
    features: tuple[Feature, ...] = FEATURES


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """The numbers. ConfigError if they contradict each other."""

    heartbeat_interval_us: Micros = 2 * SECOND
    """`broker.heartbeat.interval.ms`: from the sending of one to the next."""
    session_timeout_us: Micros = 9 * SECOND
    """`broker.session.timeout.ms`, as the controllers have it: after so long a silence they fence the broker."""
    heartbeat_timeout_us: Micros | None = None
    """`broker.heartbeat.timeout.ms` of KIP-343: how long an acknowledged heartbeat lets the member act, from its
    sending. Default, and most that the lease promise allows: three quarters of the session timeout. Longer than that
    timeout: see `lifecycle` for what is given up."""
    request_timeout_us: Micros = 2 * SECOND
    """An answer that is not there by then never comes."""
    retry_backoff_us: Micros = 50 * MS
    """Before a request is made again; twice as long each time, at most a heartbeat interval, a random part of it."""
    fetch_wait_us_max: Micros = 500 * MS
    """How long the leader may keep a Fetch that finds nothing."""
    fetch_bytes_max: int = 256 * 1024
    """Taken in at one turn: heartbeats must not wait for more."""
    metadata_heartbeats: bool = False
    """It beats as KIP-343 has it: our controllers only, and only where `older.brokers.enable` is true. They try to tell
    it by control requests, too, if it has a PLAINTEXT listener; it need not hear them."""
    control_requests: bool = False
    """It follows no metadata log: as KIP-380 has it, the controller tells it by LeaderAndIsr, UpdateMetadata and
    StopReplica what it is to know, at a port of its own. It beats as KIP-343 has it, and goes by ControlledShutdown.
    Only where the same is true."""

    def __post_init__(self) -> None:
        for name in ("heartbeat_interval_us", "session_timeout_us", "request_timeout_us", "retry_backoff_us"):
            if getattr(self, name) <= 0:
                raise ConfigError("expected a time above 0", "", name)
        if self.heartbeat_interval_us >= self.lease_us:
            raise ConfigError(
                f"a member that beats every {self.heartbeat_interval_us} us and may act for {self.lease_us} us after "
                "each would be fenced between two heartbeats",
                "beat at least three times in a session",
                "heartbeat_interval_us",
            )
        check_lease(self.lease_us, self.session_timeout_us)

    @property
    def lease_us(self) -> Micros:
        """How long an acknowledged heartbeat lets the member act, from its sending."""
        if self.heartbeat_timeout_us is not None:
            return self.heartbeat_timeout_us
        return LeasePromise.of(self.session_timeout_us).lease_us
