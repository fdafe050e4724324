"""A node's numbers as tests want them, and pages read as strictly as the format allows."""

import dataclasses
import http.client
import math
from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from fastquorum.node.causes import counts_by_name
from fastquorum.node.lane.tallies import Moved, RefusedAppends
from fastquorum.node.metadata.metrics import ControllerMetrics
from fastquorum.node.metrics import NodeMetrics, ReplicaMetrics
from fastquorum.node.ports import Unreachable
from fastquorum.observe.families import NodeView
from fastquorum.observe.process import ProcessFigures
from fastquorum.observe.stages import counted
from fastquorum.observe.window import RecentWindow
from fastquorum.raft.tally import Elections
from fastquorum.raft.transitions import Cause
from fastquorum.types import Endpoint

TIMEOUT_S = 20.0


@dataclasses.dataclass(frozen=True)
class Times:
    """A stage whose times are all known, in microseconds."""

    times: tuple[float, ...]

    @property
    def count(self) -> int:
        return len(self.times)

    @property
    def sum_us(self) -> float:
        return sum(self.times)

    def count_below(self, bound_us: float) -> int:
        return sum(each <= bound_us for each in self.times)


LEADER = NodeMetrics(
    at_us=1_000_000,
    node_id=1,
    cluster_id="AAAAAAAAAAAAAAAAAAAAAQ",
    directory_id="AAAAAAAAAAAAAAAAAAAAAg",
    kernels="native",
    role="leader",
    is_voter=True,
    epoch=7,
    leader_id=1,
    voted_id=1,
    voted_directory_id="AAAAAAAAAAAAAAAAAAAAAg",
    voter_count=3,
    is_voter_change_pending=False,
    unreachable_voters=0,
    since_leader_contact_us=-1,
    elections=Elections(2, 1, 5, 1, 250_000, ()),
    leadership_changes=counts_by_name({Cause.FETCH_TIMEOUT: 2, Cause.VOTES_WON: 3}),
    high_watermark=90,
    log_start=0,
    log_end=100,
    log_end_epoch=7,
    flushed_end=95,
    log_bytes=12_345,
    segment_count=2,
    sync_count=40,
    syncing_us=1_500,
    is_disk_full=False,
    moved=Moved(60, 40),
    replicas=(
        ReplicaMetrics(node_id=2, is_voter=True, end_offset=98, lag=2, since_contact_us=300, since_caught_up_us=900),
        ReplicaMetrics(node_id=9, is_voter=False, end_offset=50, lag=50, since_contact_us=100, since_caught_up_us=-1),
    ),
    waiting_records=10,
    waiting_bytes=1_000,
    refused=RefusedAppends(3, 1, 0, 0),
    connections=4,
    accepted=6,
    replica_cpu_us=12_000,
    controller=ControllerMetrics(
        is_active=True,
        active_brokers=3,
        fenced_brokers=2,
        leaving_brokers=1,
        topics=10,
        partitions=300,
        offline_partitions=4,
        imbalanced_partitions=30,
        last_applied=99,
        last_committed=89,
        errors=5,
        timed_out_heartbeats=6,
        new_leaders=7,
        snapshot_bytes=8_000,
        since_snapshot_us=9_000_000,
    ),
    unreachable=(Unreachable(3, Endpoint("CONTROLLER", "h3", 9093), "Connection refused", 0, 0),),
)


def node(**changes: object) -> NodeMetrics:
    """A leader, but for the changes."""
    return dataclasses.replace(LEADER, **changes)  # type: ignore[arg-type]


Stages = Mapping[str, Times]
STAGES: Stages = {
    "sync": Times((100.0, 200.0, 300.0)),
    "append_told": Times((1_000.0, 2_000_000.0, 20_000_000.0)),
}


def view(
    metrics: NodeMetrics = LEADER, before: NodeMetrics | None = None, stages: Stages = STAGES, added: Stages = STAGES
) -> NodeView:
    """`stages` are those of `before`, and `added` the same some time later."""
    window = RecentWindow()
    if before is not None:
        window.add(before, counted(stages))
    now = counted(added)
    return NodeView(metrics, now, window.add(metrics, now), ProcessFigures(1.5, 1 << 20, 12, 1024, 1.7e9), True)


class Strict(NamedTuple):
    """A page that keeps every rule of its format."""

    samples: list[Sample]
    kinds: dict[str, str]

    def value(self, name: str, **labels: str) -> float:
        found = [each.value for each in self.samples if each.name == name and labels.items() <= each.labels.items()]
        assert len(found) == 1, f"{name} {labels}: {found}"
        return float(found[0])

    def has(self, name: str) -> bool:
        return any(each.name == name for each in self.samples)


def strictly(text: str) -> Strict:
    """Parse with Prometheus' own parser; help and type come once, no sample comes twice, histograms add up."""
    assert text.endswith("\n")
    samples: list[Sample] = []
    kinds: dict[str, str] = {}
    for family in text_string_to_metric_families(text):
        name = family.name
        assert name not in kinds, f"{name} comes twice"
        assert family.documentation, name
        assert family.type in ("gauge", "counter", "histogram", "summary"), name
        assert family.samples, name
        kinds[name] = family.type
        samples += family.samples
    served = [(each.name, tuple(sorted(each.labels.items()))) for each in samples]
    assert len(served) == len(set(served)), "a sample comes twice"
    for name, kind in kinds.items():
        if kind == "histogram":
            _check_histogram(name, samples)
    return Strict(samples, kinds)


def _check_histogram(name: str, samples: list[Sample]) -> None:
    for total in [each for each in samples if each.name == f"{name}_count"]:
        buckets = [
            (float(each.labels["le"]), each.value)
            for each in samples
            if each.name == f"{name}_bucket" and total.labels.items() <= each.labels.items()
        ]
        assert buckets == sorted(buckets), name
        assert [count for _, count in buckets] == sorted(count for _, count in buckets), name
        assert buckets[-1] == (math.inf, total.value), name
        assert any(each.name == f"{name}_sum" and each.labels == total.labels for each in samples), name


class Response(NamedTuple):
    """What an HTTP server answered."""

    status: int
    body: str
    headers: dict[str, str]


def get(endpoint: str | Endpoint | None, path: str, method: str = "GET") -> Response:
    """From HOST:PORT."""
    connection = http.client.HTTPConnection(str(endpoint), timeout=TIMEOUT_S)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return Response(response.status, response.read().decode(), dict(response.getheaders()))
    finally:
        connection.close()


def scrape(endpoint: str | Endpoint | None) -> Strict:
    response = get(endpoint, "/metrics")
    assert response.status == 200, response
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return strictly(response.body)
