"""The choices of one seed: the quorum's shape, its timeouts, and how likely each fault is, often not at all."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from fastquorum.config import MS, SECOND, QuorumConfig
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.sim.prng import MILLION, Prng
from fastquorum.types import Micros
from fastquorum.wire.records.cluster import FeatureLevelRecord
from fastquorum.wire.records.metadata import encode_metadata_record

FAULT_KINDS: Final = (
    "kill",
    "power",
    "crash_point",
    "crash_all",
    "freeze",
    "stall",
    "isolate",
    "split",
    "relay",
    "one_way",
    "clog",
    "heal",
    "sync_error",
    "disk_full",
    "slow_disk",
    "hung_disk",
    "state_error",
    "transfer",
    "stop",
    "weather",
    "refuse",
    "stranger",
    "delay",
)
RATES: Final = (
    "loss",
    "duplication",
    "reordering",
    "half_open",
    "interleaving",
    "recovery_crash",
    "big_values",
)
"""Faults that happen by themselves, at a rate: fields of a swarm."""
HARDSHIPS: Final = (*FAULT_KINDS, *RATES)
"""All faults that a seed can be spared."""
_USUAL: Final = {
    "heal": 6,
    "refuse": 2,
    "delay": 2,
    "crash_point": 3,
    "kill": 2,
    "power": 2,
    "split": 2,
    "relay": 2,
    "isolate": 2,
    "stall": 2,
    "freeze": 2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Swarm:
    """One seed's choices."""

    voters: int
    observers: int
    kraft_version: int
    config: QuorumConfig
    lane_threads: tuple[bool, ...]
    """For each node, whether it has a lane thread."""
    native: tuple[bool, ...]
    """For each node, whether it has native kernels, if there are any. The trace must not depend on it."""
    clock_rates: tuple[int, ...]
    clock_zeros: tuple[Micros, ...]
    is_harsh: bool
    """Whether frames may be duplicated and overtake each other."""
    weights: tuple[int, ...]
    """The weight of each of FAULT_KINDS."""
    fault_interval_us: Micros
    faults_us: Micros
    """How long the faults last, in microseconds."""
    append_interval_us: Micros
    interleaving: int
    recovery_crash: int
    loss: int
    duplication: int
    reordering: int
    half_open: int
    big_values: int
    core_only: bool
    """Whether only a majority is healed in the end."""


def spared(swarm: Swarm, without: Collection[str]) -> Swarm:
    """Return the same choices without some of HARDSHIPS."""
    weights = tuple(0 if kind in without else weight for kind, weight in zip(FAULT_KINDS, swarm.weights, strict=True))
    rates: dict[str, Any] = {rate: 0 for rate in RATES if rate in without}
    return replace(swarm, weights=weights, **rates)


def hardships(swarm: Swarm) -> tuple[str, ...]:
    """Return the HARDSHIPS that a swarm has."""
    kinds = tuple(kind for kind, weight in zip(FAULT_KINDS, swarm.weights, strict=True) if weight)
    return (*kinds, *(rate for rate in RATES if getattr(swarm, rate)))


class ClusterSwarm(NamedTuple):
    """One seed's choices for a cluster whose controllers the nodes are."""

    brokers: int
    session_us: Micros
    snapshot_log_bytes: int
    retention_bytes: int
    has_elr: bool
    snapshot_interval_us: Micros = 0
    """The age at which snapshots are taken, as in QuorumConfig; 0: by size alone."""
    members: int = 0
    """Processes that share one broker id, in place of brokers; 0: there are brokers."""
    metadata_heartbeats: bool = False
    """Whether members send heartbeats of KIP-343."""
    calm_fetch_us: Micros = 0
    """Above 0: this is the fetch timeout, only members and leaders have faults, and all native threads go on where
    Python hangs, so that several leaders come and go within one session."""
    idle_us_max: Micros = 0
    """The idle time with `calm_fetch_us`, as in QuorumConfig."""

    @property
    def first_records(self) -> tuple[bytes, ...]:
        levels = [("metadata.version", 30), ("group.version", 1)]
        if self.has_elr:
            levels.append(("eligible.leader.replicas.version", 1))
        return tuple(
            encode_metadata_record(FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in levels
        )

    def settings(self, cluster_id: str) -> ControllerSettings:
        """Return the settings of every controller."""
        return ControllerSettings(
            cluster_id,
            session_timeout_us=self.session_us,
            leader_imbalance_check_us=3 * self.session_us,
            unclean_election_check_us=2 * self.session_us,
            older_brokers=self.metadata_heartbeats,
        )

    def applied(self, swarm: Swarm) -> Swarm:
        """Return the quorum's choices with the limits of a controller: the records of any request can be appended."""
        config = replace(
            swarm.config,
            append_queue_records_max=65_536,
            batch_bytes_max=65_536,
            snapshot_log_bytes=self.snapshot_log_bytes,
            snapshot_interval_us=self.snapshot_interval_us,
            retention_bytes=self.retention_bytes,
        )
        faults_us = max(swarm.faults_us, 6 * self.session_us)
        if self.calm_fetch_us:
            faults_us = 12 * self.session_us
            fetch_us = self.calm_fetch_us
            config = replace(
                config,
                election_timeout_us=fetch_us // 2,
                fetch_timeout_us=fetch_us,
                election_backoff_us_max=fetch_us // 2,
                request_timeout_us=fetch_us,
                fetch_wait_us_max=fetch_us // 4,
                idle_us_max=self.idle_us_max,
            )
            swarm = replace(swarm, weights=(0,) * len(FAULT_KINDS), lane_threads=(True,) * len(swarm.lane_threads))
        if self.snapshot_interval_us:
            swarm = replace(swarm, kraft_version=0)  # it is raised amid the faults
        return replace(swarm, config=config, faults_us=faults_us)


def draw_cluster(prng: Prng) -> ClusterSwarm:
    """Draw the choices of a cluster."""
    return ClusterSwarm(
        brokers=prng.between(2, 5),
        session_us=prng.between(1_500, 9_000) * MS,
        snapshot_log_bytes=prng.pick((2_000, 20_000, 1_000_000)),
        retention_bytes=prng.pick((0, 8_000, 60_000)),
        has_elr=prng.randrange(2) == 0,
    )


def with_snapshots_by_age(cluster: ClusterSwarm, prng: Prng) -> ClusterSwarm:
    """Return the choices with snapshots by age, so often that one begins while records behind it are not committed."""
    return cluster._replace(snapshot_interval_us=prng.between(20, 200) * MS)


def draw_members(prng: Prng) -> ClusterSwarm:
    """Draw the choices of a cluster of members."""
    session_us = prng.between(1_000, 4_000) * MS
    return draw_cluster(prng)._replace(
        brokers=0,
        members=prng.between(2, 3),
        session_us=session_us,
        metadata_heartbeats=prng.randrange(4) == 0,
        calm_fetch_us=session_us * prng.between(1, 5) // 8 if prng.randrange(4) else 0,
        idle_us_max=500 * MS if prng.randrange(2) else 0,
    )


def draw(prng: Prng, nodes: int | None = None) -> Swarm:
    """Draw a seed's swarm; `nodes` fixes the number of voters."""
    voters = nodes if nodes is not None else (1, 2, 3, 3, 3, 3, 3, 4, 5, 5)[prng.randrange(10)]
    observers = (0, 0, 0, 1, 1, 2)[prng.randrange(6)]
    count = voters + observers
    mood = prng.randrange(10)  # 0, 1: few faults; 2, 3: all at once; else a mixture
    is_lite, is_all = mood < 2, 2 <= mood < 4
    weights = tuple(
        _USUAL.get(kind, 1) if is_all or kind == "heal" or prng.randrange(10) < (2 if is_lite else 5) else 0
        for kind in FAULT_KINDS
    )
    is_harsh = prng.randrange(3) == 0
    config = _config(prng)
    rhythm = config.election_timeout_us
    return Swarm(
        voters=voters,
        observers=observers,
        kraft_version=prng.randrange(2),
        config=config,
        lane_threads=tuple(prng.randrange(2) == 0 for _ in range(count)),
        native=tuple(prng.randrange(2) == 0 for _ in range(count)),
        clock_rates=tuple(
            MILLION + (prng.between(-100_000, 100_000) if prng.randrange(2) else 0) for _ in range(count)
        ),
        clock_zeros=tuple(prng.randrange(1000 * SECOND) for _ in range(count)),
        is_harsh=is_harsh,
        weights=weights,
        fault_interval_us=prng.between(rhythm // 4, 3 * rhythm),
        faults_us=prng.between(10 * rhythm, 25 * rhythm),
        append_interval_us=prng.between(rhythm // 12, rhythm),
        interleaving=_maybe(prng, 300_000),
        recovery_crash=_maybe(prng, 500_000),
        loss=_maybe(prng, 20_000),
        duplication=_maybe(prng, 200_000) if is_harsh else 0,
        reordering=_maybe(prng, 300_000) if is_harsh else 0,
        half_open=_maybe(prng, 500_000),
        big_values=_maybe(prng, 300_000),
        core_only=prng.randrange(3) == 0,
    )


def _maybe(prng: Prng, most: int) -> int:
    """Draw 0 for half of the seeds, else up to `most` per million."""
    return prng.randrange(most) if prng.randrange(2) else 0


def _config(prng: Prng) -> QuorumConfig:
    """Draw Kafka's timeouts for a third of the seeds, other reasonable ones for the rest."""
    segment_bytes = prng.pick((4096, 8192, 16384, 65536))
    preallocate_bytes = prng.pick((0, 1024, 4096, 8192))
    fetch_bytes_max = prng.pick((512, 4096, 1024 * 1024))
    batch_bytes_max = prng.pick((2048, 8192, 65536))
    records_max = prng.pick((4, 64, 65_536))
    shared = {
        "segment_bytes": segment_bytes,
        "preallocate_bytes": preallocate_bytes,
        "fetch_bytes_max": fetch_bytes_max,
        "batch_bytes_max": batch_bytes_max,
        "append_queue_records_max": records_max,
    }
    if prng.randrange(3) == 0:
        return QuorumConfig(**shared)
    election_us = prng.between(150, 1500) * MS
    fetch_us = election_us * prng.between(8, 30) // 10
    return QuorumConfig(
        election_timeout_us=election_us,
        fetch_timeout_us=fetch_us,
        election_backoff_us_max=election_us * prng.between(5, 15) // 10,
        request_timeout_us=fetch_us * prng.between(5, 25) // 10,
        retry_backoff_us=prng.between(5, 50) * MS,
        fetch_wait_us_max=max(fetch_us // prng.between(3, 8), 20 * MS),
        mark_interval_us=prng.between(50, 2000) * MS,
        disk_stall_us_max=prng.between(1, 5) * fetch_us,
        **shared,
    )
