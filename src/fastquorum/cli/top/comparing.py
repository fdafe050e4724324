"""Two looks at a quorum, made into what is shown: each node with its rates and percentiles in between."""

import math
from typing import Any, Final, NamedTuple

from fastquorum.cli.top.looking import MetricsPage, QuorumLook
from fastquorum.client.describing import Voters
from fastquorum.observe.exposition import Samples
from fastquorum.observe.kafka import STATES
from fastquorum.observe.stages import COMMIT, SYNC
from fastquorum.types import NO_NODE, Endpoint, NodeId
from fastquorum.wire.message import camel_case

STAGE_METRIC: Final = "fastquorum_commit_stage_seconds"
_STATE_METRIC: Final = "kafka_server_raft_metrics_current_state"


class NodeRow(NamedTuple):
    """One node. None: not known."""

    id: NodeId | None
    endpoint: str
    is_up: bool
    reason: str
    """Why it is not."""
    role: str
    epoch: int | None
    leader: NodeId | None
    """Whom it takes for the leader."""
    log_end: int | None
    high_watermark: int | None
    lag: int | None
    lag_ms: int | None
    """Since it had the whole log, as the leader says."""
    commits_per_s: float | None
    appends_per_s: float | None
    fetches_per_s: float | None
    refused_per_s: float | None
    syncs_per_s: float | None
    sync_p50_us: float | None
    sync_p99_us: float | None
    commit_p50_us: float | None
    commit_p99_us: float | None
    connections: int | None
    cpu_percent: float | None

    def as_json(self) -> dict[str, Any]:
        """Camel case, as `quorum describe` has it."""
        return {camel_case(key.removeprefix("is_")): _rounded(value) for key, value in self._asdict().items()}


class QuorumRow(NamedTuple):
    """The whole."""

    cluster_id: str
    leader: NodeId | None
    epoch: int | None
    high_watermark: int | None
    commits_per_s: float | None
    """Records."""
    problem: str
    """Why no leader is found; empty if one is."""
    missing_metrics: tuple[str, ...]
    """Where they were looked for, and why there are none."""
    nodes: tuple[NodeRow, ...]

    def as_json(self) -> dict[str, Any]:
        whole = {
            camel_case(key.removeprefix("is_")): _rounded(value)
            for key, value in self._asdict().items()
            if key != "nodes"
        }
        return {**whole, "nodes": [each.as_json() for each in self.nodes]}


def compare(before: QuorumLook | None, now: QuorumLook) -> QuorumRow:
    """Return the row of one look. Without `before` there are no rates."""
    quorum = now.quorum
    elapsed_s = now.at_s - before.at_s if before is not None else 0.0
    commits_per_s = None
    if quorum is not None and before is not None and before.quorum is not None:
        moved = quorum.high_watermark - before.quorum.high_watermark
        are_known = min(quorum.high_watermark, before.quorum.high_watermark) >= 0
        commits_per_s = max(moved, 0) / elapsed_s if are_known else None
    pages = {each.node_id: each for each in now.pages if each.node_id is not None}
    old = {each.node_id: each for each in before.pages if each.node_id is not None} if before is not None else {}
    described = [*quorum.current_voters, *quorum.observers] if quorum is not None else []
    ids = sorted({*now.nodes, *pages, *(row.replica_id for row in described)})
    rows = [_node_row(each, now, pages.get(each), old.get(each), elapsed_s) for each in ids]
    if not rows:
        # The members of the quorum are unknown: only the given addresses are there.
        rows = [_unknown(each.endpoint, each.reason) for each in now.answers]
    return QuorumRow(
        cluster_id=now.cluster_id,
        leader=quorum.leader_id if quorum is not None else None,
        epoch=quorum.leader_epoch if quorum is not None else None,
        high_watermark=quorum.high_watermark if quorum is not None else None,
        commits_per_s=commits_per_s,
        problem=now.no_quorum,
        missing_metrics=tuple(each.reason for each in now.pages if each.samples is None),
        nodes=tuple(rows),
    )


def _node_row(
    node_id: NodeId, now: QuorumLook, page: MetricsPage | None, old: MetricsPage | None, elapsed_s: float
) -> NodeRow:
    endpoint = now.nodes.get(node_id)
    answer = next((each for each in now.answers if each.endpoint == endpoint), None)
    samples = page.samples if page is not None else None
    reported = answer.cluster.controller_id if answer is not None and answer.cluster is not None else NO_NODE
    log_end, lag, lag_ms = _lag(now.quorum, node_id)
    rates = _Rates(samples, old.samples if old is not None else None, elapsed_s)
    is_down = answer is not None and answer.cluster is None and samples is None
    return NodeRow(
        id=node_id,
        endpoint=endpoint.address if endpoint is not None else "",
        is_up=not is_down,
        reason=answer.reason if answer is not None and is_down else "",
        role="down" if is_down else _role(node_id, samples, now.quorum),
        epoch=rates.whole("kafka_server_raft_metrics_current_epoch"),
        leader=reported if reported != NO_NODE else None,
        log_end=log_end if log_end is not None else rates.whole("kafka_server_raft_metrics_log_end_offset"),
        high_watermark=rates.whole("kafka_server_raft_metrics_high_watermark"),
        lag=lag,
        lag_ms=lag_ms,
        commits_per_s=rates.per_s("fastquorum_committed_records_total"),
        appends_per_s=rates.per_s("fastquorum_appended_records_total"),
        fetches_per_s=rates.per_s("fastquorum_fetched_records_total"),
        refused_per_s=rates.per_s("fastquorum_appends_refused_total"),
        syncs_per_s=rates.per_s("fastquorum_syncs_total"),
        sync_p50_us=rates.percentile(SYNC, 0.5),
        sync_p99_us=rates.percentile(SYNC, 0.99),
        commit_p50_us=rates.percentile(COMMIT, 0.5),
        commit_p99_us=rates.percentile(COMMIT, 0.99),
        connections=rates.whole("fastquorum_connections"),
        cpu_percent=_percent(rates.per_s("process_cpu_seconds_total")),
    )


def _unknown(endpoint: Endpoint, reason: str) -> NodeRow:
    nothing: dict[str, Any] = dict.fromkeys(NodeRow._fields)
    return NodeRow(**{**nothing, "endpoint": endpoint.address, "is_up": False, "reason": reason, "role": "down"})


def _role(node_id: NodeId, samples: Samples | None, quorum: Voters | None) -> str:
    if samples is not None:
        for state in STATES:
            if samples.value(_STATE_METRIC, current_state=state) == 1:
                return state
    if quorum is None:
        return ""
    if node_id == quorum.leader_id:
        return "leader"
    return "observer" if any(row.replica_id == node_id for row in quorum.observers) else "follower"


def _lag(quorum: Voters | None, node_id: NodeId) -> tuple[int | None, int | None, int | None]:
    """Log end, records and milliseconds behind, as the leader sees them."""
    rows = [*quorum.current_voters, *quorum.observers] if quorum is not None else []
    row = next((each for each in rows if each.replica_id == node_id), None)
    leader = next((each for each in rows if quorum is not None and each.replica_id == quorum.leader_id), None)
    if row is None or leader is None or row.log_end_offset < 0:
        return None, None, None
    lag_ms = None
    if row.last_caught_up_timestamp >= 0 and leader.last_caught_up_timestamp >= 0:
        lag_ms = max(leader.last_caught_up_timestamp - row.last_caught_up_timestamp, 0)
    return row.log_end_offset, max(leader.log_end_offset - row.log_end_offset, 0), lag_ms


class _Rates:
    """What changed in one node's metrics."""

    def __init__(self, now: Samples | None, before: Samples | None, elapsed_s: float) -> None:
        self._now = now
        self._before = before
        self._elapsed_s = elapsed_s

    def whole(self, name: str) -> int | None:
        value = self._now.value(name) if self._now is not None else None
        return int(value) if value is not None and value >= 0 else None

    def per_s(self, counter: str) -> float | None:
        """Return the rate over all series of a counter; None if there is none, or the node was restarted in between."""
        if self._now is None or self._before is None or not self._elapsed_s:
            return None
        now, before = self._now.all(counter), self._before.all(counter)
        moved = sum(each.value for each in now) - sum(each.value for each in before)
        return moved / self._elapsed_s if now and before and moved >= 0 else None

    def percentile(self, stage: str, fraction: float) -> float | None:
        if self._now is None or self._before is None:
            return None
        passed = self._now.stage(STAGE_METRIC, stage).since(self._before.stage(STAGE_METRIC, stage))
        value = passed.quantile_us(fraction) if passed.count > 0 else math.nan
        return None if math.isnan(value) else value


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _rounded(value: object) -> object:
    return round(value, 1) if isinstance(value, float) else value
