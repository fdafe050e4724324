"""`fastquorum quorum describe`: what `kafka-metadata-quorum describe` prints, to the byte, and as JSON.

Of our nodes a last line of the status says why leadership changed last; Kafka's controllers do not tell.

Source: Kafka `MetadataQuorumCommand`, `ToolsUtils`.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from fastquorum.cli.quorum.client import quorum_client
from fastquorum.cli.terminal.arguments import add_bootstrap, add_format, add_kernels, explain, positive_seconds
from fastquorum.cli.terminal.output import print_json
from fastquorum.client.connection import Deadline
from fastquorum.client.describing import last_change_of
from fastquorum.errors import NotReady, UsageError
from fastquorum.types import ZERO_UUID, NodeId, address_text
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse

Partition = DescribeQuorumResponse.TopicData.PartitionData
Row = Partition.ReplicaState

_HEADER: Final = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Describe the quorum as its leader sees it, with the labels and columns of kafka-metadata-quorum.",
        "fastquorum quorum describe --bootstrap h1:9093,h2:9093,h3:9093 --status",
        "fastquorum quorum describe --bootstrap h1:9093 --replication --human-readable --watch",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--status", action="store_true", help="leader, epoch, high watermark, largest lag, voters (default)"
    )
    what.add_argument("--replication", action="store_true", help="one row for each replica")
    parser.add_argument("--human-readable", action="store_true", help="with --replication: show times relative to now")
    parser.add_argument(
        "--watch", nargs="?", const=1.0, type=positive_seconds, metavar="SECONDS", help="repeat at this interval (1 s)"
    )
    add_bootstrap(parser)
    add_kernels(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.human_readable and not arguments.replication:
        raise UsageError("--human-readable goes with --replication only")
    with quorum_client(arguments) as client:
        while True:
            deadline = Deadline(arguments.timeout)
            response = client.describe(deadline)
            cluster_id = client.controller(deadline).cluster_id
            now_ms = time.time_ns() // 1_000_000
            if arguments.format == "json":
                print_json(as_json(response, cluster_id))
            elif arguments.replication:
                print(replication_text(response, now_ms if arguments.human_readable else None), end="")
            else:
                print(status_text(response, cluster_id))
            sys.stdout.flush()
            if arguments.watch is None:
                return 0
            time.sleep(arguments.watch)
            if arguments.format == "table":
                print()


def status_text(response: DescribeQuorumResponse, cluster_id: str) -> str:
    """`describe --status`, without the last newline."""
    partition = response.topics[0].partitions[0]
    lag, lag_ms = _worst_lag(partition)
    last_change = last_change_of(response)
    return "\n".join(
        (
            f"ClusterId:              {cluster_id}",
            f"LeaderId:               {partition.leader_id}",
            f"LeaderEpoch:            {partition.leader_epoch}",
            f"HighWatermark:          {partition.high_watermark}",
            f"MaxFollowerLag:         {lag}",
            f"MaxFollowerLagTimeMs:   {lag_ms}",
            f"CurrentVoters:          {_replicas_text(response, partition.current_voters)}",
            f"CurrentObservers:       {_replicas_text(response, partition.observers)}",
            *((f"LastLeaderChange:       {last_change}",) if last_change is not None else ()),
        )
    )


def replication_text(response: DescribeQuorumResponse, now_ms: int | None) -> str:
    """`describe --replication`; with the time of now as --human-readable. Cells are padded, and a tab ends each."""
    partition = response.topics[0].partitions[0]
    leader = _leader(partition)
    followers = [row for row in partition.current_voters if row.replica_id != partition.leader_id]
    rows = [
        _cells(leader, row, status, now_ms)
        for status, group in (("Leader", [leader]), ("Follower", followers), ("Observer", partition.observers))
        for row in group
    ]
    table: list[Sequence[str]] = [_HEADER, *rows]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEADER))]
    return "".join(
        "".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)) + "\n" for line in table
    )


def as_json(response: DescribeQuorumResponse, cluster_id: str) -> dict[str, Any]:
    """Both views in one object."""
    partition = response.topics[0].partitions[0]
    leader = _leader(partition)
    lag, lag_ms = _worst_lag(partition)
    last_change = last_change_of(response)
    endpoints = _endpoints(response)

    def row_json(row: Row) -> dict[str, Any]:
        return {
            "id": row.replica_id,
            "directoryId": str(row.replica_directory_id),
            "endpoints": endpoints(row.replica_id),
            "logEndOffset": row.log_end_offset,
            "lag": leader.log_end_offset - row.log_end_offset,
            "lastFetchTimestamp": row.last_fetch_timestamp,
            "lastCaughtUpTimestamp": row.last_caught_up_timestamp,
        }

    return {
        "clusterId": cluster_id,
        "leaderId": partition.leader_id,
        "leaderEpoch": partition.leader_epoch,
        "highWatermark": partition.high_watermark,
        "maxFollowerLag": lag,
        "maxFollowerLagTimeMs": lag_ms,
        "voters": [row_json(row) for row in partition.current_voters],
        "observers": [row_json(row) for row in partition.observers],
        "lastChange": last_change._asdict() if last_change is not None else None,
    }


def _leader(partition: Partition) -> Row:
    for row in partition.current_voters:
        if row.replica_id == partition.leader_id:
            return row
    raise NotReady(f"the leader, node {partition.leader_id}, is not among the voters")


def _worst_lag(partition: Partition) -> tuple[int, int]:
    """How far the slowest voter is behind, in records and in milliseconds (-1: not known)."""
    leader = _leader(partition)
    slowest = min(partition.current_voters, key=lambda row: row.log_end_offset)
    lag = leader.log_end_offset - slowest.log_end_offset
    if slowest is leader:
        return lag, 0
    if leader.last_caught_up_timestamp < 0 or slowest.last_caught_up_timestamp < 0:
        return lag, -1
    return lag, leader.last_caught_up_timestamp - slowest.last_caught_up_timestamp


def _endpoints(response: DescribeQuorumResponse) -> Callable[[NodeId], list[str]]:
    known = {
        node.node_id: [f"{each.name}://{address_text(each.host, each.port)}" for each in node.listeners]
        for node in response.nodes
    }
    return lambda node_id: known.get(node_id, [])


def _replicas_text(response: DescribeQuorumResponse, rows: Sequence[Row]) -> str:
    endpoints = _endpoints(response)
    shown = []
    for row in rows:
        parts = [f'"id": {row.replica_id}']
        if row.replica_directory_id != ZERO_UUID:
            parts.append(f'"directoryId": "{row.replica_directory_id}"')
        if urls := endpoints(row.replica_id):
            parts.append('"endpoints": [' + ", ".join(f'"{url}"' for url in urls) + "]")
        shown.append("{" + ", ".join(parts) + "}")
    return "[" + ", ".join(shown) + "]"


def _cells(leader: Row, row: Row, status: str, now_ms: int | None) -> tuple[str, ...]:
    return (
        str(row.replica_id),
        str(row.replica_directory_id),
        str(row.log_end_offset),
        str(leader.log_end_offset - row.log_end_offset),
        _time(row.last_fetch_timestamp, now_ms),
        _time(row.last_caught_up_timestamp, now_ms),
        status,
    )


def _time(timestamp_ms: int, now_ms: int | None) -> str:
    """Return a time in the form of Kafka's tool, which fails if clocks differ: here that is 0 ms ago."""
    if timestamp_ms < 0 or now_ms is None:
        return str(timestamp_ms)
    return f"{max(now_ms - timestamp_ms, 0)} ms ago"
