"""What `open` takes, for both twins: declared once, checked by the type checker as well as at run time."""

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

from fastquorum.errors import ConfigError
from fastquorum.node.io.sources import read_settings
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.types import Endpoint, VoterSet

Path = str | os.PathLike[str]
"""Where a data directory is."""


class QuorumOptions(TypedDict, total=False):
    """Any field of `QuorumConfig`: times in microseconds, sizes in bytes. See there for what they mean."""

    election_timeout_us: int
    fetch_timeout_us: int
    election_backoff_us_max: int
    request_timeout_us: int
    retry_backoff_us: int
    fetch_wait_us_max: int
    fetch_bytes_max: int
    fetch_snapshot_bytes_max: int
    observer_expiry_us: int
    batch_bytes_max: int
    segment_bytes: int
    preallocate_bytes: int
    mark_interval_us: int
    frame_bytes_max: int
    connections_max: int
    connection_idle_us_max: int
    partial_frame_us_max: int
    append_queue_records_max: int
    append_queue_bytes_max: int
    idle_us_max: int
    snapshot_log_bytes: int
    snapshot_interval_us: int
    retention_bytes: int
    retention_us: int
    disk_stall_us_max: int
    busy_poll_us: int


class OpenOptions(QuorumOptions, total=False):
    """Everything `open` takes beside the path. What is not given comes from `config_file`, else from the environment
    (FASTQUORUM_*), else from the formatted directory or a default.
    """

    node_id: int | None
    """This node's id, 0 or above. Needed for an empty directory; a formatted one knows it."""
    voters: str | Sequence[str] | VoterSet | None
    """ID@HOST:PORT[:DIRECTORY_ID],... for every voter, this node included. Not given: a quorum of one."""
    cluster_id: str | None
    """The same for every node. Needed for an empty directory unless it is a quorum of one."""
    listen: str | Endpoint | None
    """HOST:PORT to bind. Not given: this node's address among the voters; for a quorum of one, a free loopback port."""
    advertise: str | Endpoint | None
    """HOST:PORT that others are told. Not given: what the voters say of it, or where it listens if they do not."""
    bootstrap: str | Endpoint | Sequence[str | Endpoint] | None
    """HOST:PORT,... of nodes to ask who leads, for a node that knows no voters."""
    create: bool | str | None
    """An empty or missing directory may be formatted; True. With False it is refused, which is right wherever the
    directory has been formatted once: where its volume was not mounted, an empty voter, which has forgotten its votes
    and records, would come back in its name."""
    log: Literal["user", "metadata"] | None
    """What an empty directory is formatted for: the user's records (default), or Kafka's metadata records (default of
    a `controller`)."""
    controller: bool | str | None
    """This node is one of the cluster's controllers: brokers register here. Its log is a metadata log (an empty
    directory is formatted for one) that the controller writes, and nobody else: appends are refused. Not given: as the
    directory was formatted."""
    session_timeout_us: int | None
    """How long a broker may be silent before the controller fences it; 9 s by default."""
    older_brokers: bool | str | None
    """Whether the controller serves brokers of KIP-343 and KIP-380, too; no Kafka of today is one."""
    num_partitions: int | None
    default_replication_factor: int | None
    """Partitions, and replicas of each, of a topic that is created without a number; the controller's default is 1."""
    min_insync_replicas: int | None
    unclean_leader_election: bool | str | None
    """The controller's defaults for topics that have no configuration of that name: 1 and False."""
    preferred_leaders: bool | str | None
    """Whether the controller sees to it that the replicas named first lead; True by default."""
    imbalance_check_us: int | None
    unclean_check_us: int | None
    """How often the controller looks for leaders that are not preferred, and leaderless partitions; 300 s each by
    default."""
    delete_topics: bool | str | None
    """Whether the controller lets topics be deleted; True by default."""
    remote_storage: bool | str | None
    """Whether brokers have remote storage, so that topics may keep their logs there; False by default."""
    topic: str | None
    """The topic that Kafka clients see a user log as; "quorum" by default."""
    kernels: Literal["native", "pure"] | None
    """Which kernels run; "native" by default. There is no fallback."""
    metrics: str | Endpoint | None
    """HOST:PORT that serves /metrics (Prometheus), /healthz and /readyz by HTTP. Not given: nothing is served."""
    otel: str | None
    """URL that metrics are pushed to by OTLP over HTTP, every OTEL_METRIC_EXPORT_INTERVAL; "" leaves the URL to
    OTEL_EXPORTER_OTLP_ENDPOINT. Needs the extra `fastquorum[otel]`. Not given: nothing is pushed."""
    config_file: Path | None
    """A properties file with Kafka's keys, or a TOML file."""


def settings_of(path: Path, options: OpenOptions) -> NodeSettings:
    """Arguments, file and environment put together. ConfigError names what is wrong and where."""
    arguments: dict[str, object] = {"path": _path_text("path", path), **options}
    file = options.get("config_file")
    arguments.pop("config_file", None)
    return read_settings(arguments, None if file is None else _path_text("config_file", file))


def _path_text(name: str, path: object) -> str:
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str) or "\0" in text:
        raise ConfigError(f"{path!r} is not a path", "give text or a pathlib.Path", name, "argument")
    return text
