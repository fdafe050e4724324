"""The settings of a member: its identity, and its limits and times. Plain values; pure.

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
"""The features that a broker of Kafka 4.3 reports: a controller refuses a broker without a finalized one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """The identity of a member. `join` takes the same."""

    broker_id: NodeId
    cluster_id: str
    bootstrap: tuple[Endpoint, ...]
    """The controllers to ask for the leader."""
    incarnation_id: Uuid
    """A random id of this process, which tells two processes with one broker id apart."""
    log_dirs: tuple[Uuid, ...]
    """Directory ids, at least one; no other broker of the cluster has any of them."""
    listeners: tuple[Listener, ...] = ()
    rack: str | None = None
    features: tuple[Feature, ...] = FEATURES


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """The limits and times of a member. ConfigError if they contradict each other."""

    heartbeat_interval_us: Micros = 2 * SECOND
    """`broker.heartbeat.interval.ms`: from the sending of one to the next."""
    session_timeout_us: Micros = 9 * SECOND
    """`broker.session.timeout.ms`, as the controllers have it: after so long a silence they fence the broker."""
    heartbeat_timeout_us: Micros | None = None
    """`broker.heartbeat.timeout.ms` of KIP-343: how long an acknowledged heartbeat lets the member act, from its
    sending. Default, and most that the lease promise allows: three quarters of the session timeout. Longer than that
    timeout: see `lifecycle` for what is given up."""
    request_timeout_us: Micros = 2 * SECOND
    """After this time a request counts as unanswered."""
    retry_backoff_us: Micros = 50 * MS
    """Time before a request is sent again; doubled each time up to a heartbeat interval, and partly random."""
    fetch_wait_us_max: Micros = 500 * MS
    """How long the leader may keep a Fetch that finds nothing."""
    fetch_bytes_max: int = 256 * 1024
    """Most bytes taken in one turn: heartbeats must not wait for more."""
    metadata_heartbeats: bool = False
    """Send heartbeats of KIP-343: to our controllers only, and only where `older.brokers.enable` is true. They send
    control requests, too, if the member has a PLAINTEXT listener; it need not accept them."""
    control_requests: bool = False
    """Follow no metadata log: as in KIP-380, the controller sends the metadata by LeaderAndIsr, UpdateMetadata and
    StopReplica to the member's own port. It sends heartbeats of KIP-343, and stops by ControlledShutdown. Only where
    `older.brokers.enable` is true."""

    def __post_init__(self) -> None:
        for name in ("heartbeat_interval_us", "session_timeout_us", "request_timeout_us", "retry_backoff_us"):
            if getattr(self, name) <= 0:
                raise ConfigError("expected a time above 0", "", name)
        if self.heartbeat_interval_us >= self.lease_us:
            raise ConfigError(
                f"a member that sends a heartbeat every {self.heartbeat_interval_us} us and may act for "
                f"{self.lease_us} us after each would be fenced between two heartbeats",
                "send at least three heartbeats in a session",
                "heartbeat_interval_us",
            )
        check_lease(self.lease_us, self.session_timeout_us)

    @property
    def lease_us(self) -> Micros:
        """How long an acknowledged heartbeat lets the member act, from its sending."""
        if self.heartbeat_timeout_us is not None:
            return self.heartbeat_timeout_us
        return LeasePromise.of(self.session_timeout_us).lease_us
