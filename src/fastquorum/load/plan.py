"""What one run of the load generator does: plain values, sent to the worker processes as JSON."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

Driver = Literal["embedded", "client", "kafka"]
Api = Literal["blocking", "asyncio"]
Workload = Literal["values", "keys", "topics", "isr", "heartbeats", "golden"]
Arrivals = Literal["even", "poisson"]

DRIVERS: Final = ("embedded", "client", "kafka")
APIS: Final = ("blocking", "asyncio")
WORKLOADS: Final = ("values", "keys", "topics", "isr", "heartbeats", "golden")
ARRIVALS: Final = ("even", "poisson")
TICK_US_MAX: Final = 1000
TOPIC: Final = "quorum"
"""Unless its directory was formatted with another name."""
IN_FLIGHT_MAX: Final = 100_000
"""Appends; beyond what a quorum takes by default, so that it is the quorum that refuses first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """One run at one offered load. Rates count records, in flight counts appends."""

    driver: Driver = "embedded"
    api: Api = "blocking"
    topic: str = TOPIC
    """The topic whose partition 0 the drivers over sockets append to."""
    workload: Workload = "values"
    record_bytes: int = 100
    """Bytes of each value, for the workloads `values` and `keys`; the others have sizes of their own."""
    records_per_append: int = 1
    records_per_s: float | None = 10_000.0
    """The offered load of the open loop; None: closed loop."""
    closed: int = 0
    """Appends in flight in the closed loop: the end of one begins the next."""
    seconds: float = 10.0
    warmup_s: float = 2.0
    arrivals: Arrivals = "even"
    tick_us: int = TICK_US_MAX
    """Arrivals are grouped in ticks of at most this."""
    in_flight_max: int = IN_FLIGHT_MAX
    """Arrivals beyond it are not sent; they count as errors."""
    timeout_s: float = 10.0
    """After which an append is given up and counts as an error."""
    seed: int = 1

    @property
    def appends_per_s(self) -> float | None:
        return None if self.records_per_s is None else self.records_per_s / self.records_per_append

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**fields)
