"""What a node is started with, and how it is written in arguments, files and the environment. Pure: text in, values
out.

Each setting is declared once: its argument's name, the keys that mean it in a file (Kafka's `controller.quorum.*`,
KIP-595's `quorum.*`, ours), and how its text is read (`node.settings.parsing`). An environment variable is FASTQUORUM_
and a key or argument in capitals, everything but letters and digits as `_`. Reading files and the environment is
`node.io.sources`' business.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final, NamedTuple

from fastquorum.config import MS, QuorumConfig
from fastquorum.errors import ConfigError
from fastquorum.kernels import BATCH_HEADER_BYTES
from fastquorum.lease import check_session
from fastquorum.node.settings import parsing as reading
from fastquorum.node.settings.parsing import Parse, Value
from fastquorum.storage.identity import LogKind
from fastquorum.types import Endpoint, Micros, NodeId, VoterSet

VARIABLE_PREFIX: Final = "FASTQUORUM_"


class SettingsSource(NamedTuple):
    """Where settings come from, by name, and what it says: key to text, or to a value of the right type already."""

    name: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Everything a node may be told; None where the formatted directory decides, or a default does."""

    path: str | None = None
    node_id: NodeId | None = None
    voters: VoterSet | None = None
    cluster_id: str | None = None
    listen: Endpoint | None = None
    """Where to bind; an empty host means every address."""
    advertise: Endpoint | None = None
    bootstrap: tuple[Endpoint, ...] = ()
    create: bool = True
    """An embedded node's: an empty directory is formatted, a missing one made."""
    log: LogKind | None = None
    topic: str | None = None
    kernels: str = "native"
    controller: bool | None = None
    """The node is one of the cluster's controllers; None: if its directory was formatted for one."""
    session_timeout_us: Micros | None = None
    """A controller's: brokers that are silent for so long are fenced."""
    older_brokers: bool = False
    """A controller's: brokers may speak as KIP-343 and KIP-380 have it."""
    num_partitions: int | None = None
    default_replication_factor: int | None = None
    """A controller's, with num_partitions: of topics that are created without a number."""
    min_insync_replicas: int | None = None
    unclean_leader_election: bool | None = None
    """A controller's, with min_insync_replicas: of topics that have no configuration of that name."""
    preferred_leaders: bool | None = None
    imbalance_check_us: Micros | None = None
    """A controller's: how often it looks for preferred leaders; not at all if preferred_leaders is False."""
    unclean_check_us: Micros | None = None
    """A controller's: how often it looks for partitions without a leader."""
    delete_topics: bool | None = None
    """A controller's: topics may be deleted."""
    remote_storage: bool | None = None
    """A controller's: topics may keep their logs in the brokers' remote storage."""
    metrics: Endpoint | None = None
    """Where to serve /metrics, /healthz and /readyz; an empty host means every address."""
    otel: str | None = None
    """Where to push metrics by OTLP over HTTP; "" where OTEL_EXPORTER_OTLP_... says."""
    quorum: QuorumConfig = field(default_factory=QuorumConfig)
    given: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of what was said, by whichever source."""


class Setting(NamedTuple):
    """One setting. `name` is the argument; a field of QuorumConfig if `is_quorum`."""

    name: str
    keys: tuple[str, ...]
    parse: Parse
    is_quorum: bool = False


def _quorum(name: str, keys: Sequence[str], parse: Parse, *, both: bool = True) -> Setting:
    """`quorum.*` of KIP-595 and `controller.quorum.*` of Kafka."""
    named = [f"{prefix}quorum.{key}" for key in keys for prefix in ("controller.", "")] if both else list(keys)
    return Setting(name, tuple(named), parse, is_quorum=True)


SETTINGS: Final = (
    Setting("path", ("metadata.log.dir", "log.dirs", "log.dir"), reading.directory),
    Setting("node_id", ("node.id", "broker.id"), reading.node_id),
    Setting("voters", ("controller.quorum.voters", "quorum.voters"), reading.voters),
    Setting("cluster_id", ("cluster.id",), reading.plain_text),
    Setting("listen", ("listeners",), reading.listener),
    Setting("advertise", ("advertised.listeners",), reading.advertised),
    Setting("bootstrap", ("controller.quorum.bootstrap.servers", "quorum.bootstrap.servers"), reading.endpoints),
    Setting("create", ("directory.create",), reading.flag),
    Setting("log", ("log.kind",), reading.log_kind),
    Setting("topic", ("topic.name",), reading.plain_text),
    Setting("kernels", ("kernels",), reading.kernels),
    Setting("controller", ("controller.enable",), reading.flag),
    Setting(
        "session_timeout_us", ("broker.session.timeout.ms", "controller.heartbeat.timeout.ms"), reading.milliseconds
    ),
    Setting("older_brokers", ("older.brokers.enable",), reading.flag),
    Setting("num_partitions", ("num.partitions",), reading.count),
    Setting("default_replication_factor", ("default.replication.factor",), reading.replication_factor),
    Setting("min_insync_replicas", ("min.insync.replicas",), reading.count),
    Setting("unclean_leader_election", ("unclean.leader.election.enable",), reading.flag),
    Setting("preferred_leaders", ("auto.leader.rebalance.enable",), reading.flag),
    Setting("imbalance_check_us", ("leader.imbalance.check.interval.seconds",), reading.seconds),
    Setting("unclean_check_us", ("unclean.leader.election.interval.ms",), reading.milliseconds),
    Setting("delete_topics", ("delete.topic.enable",), reading.flag),
    Setting("remote_storage", ("remote.log.storage.system.enable",), reading.flag),
    Setting("metrics", ("metrics.listener",), reading.endpoint),
    Setting("otel", ("otel.endpoint",), reading.url),
    _quorum("election_timeout_us", ["election.timeout.ms"], reading.milliseconds),
    _quorum("fetch_timeout_us", ["fetch.timeout.ms"], reading.milliseconds),
    _quorum("election_backoff_us_max", ["election.backoff.max.ms"], reading.milliseconds),
    _quorum("request_timeout_us", ["request.timeout.ms"], reading.milliseconds),
    _quorum("retry_backoff_us", ["retry.backoff.ms"], reading.milliseconds),
    _quorum("fetch_wait_us_max", ["fetch.wait.max.ms"], reading.milliseconds),
    _quorum("fetch_bytes_max", ["fetch.max.bytes"], reading.count),
    _quorum("fetch_snapshot_bytes_max", ["fetch.snapshot.max.bytes"], reading.count),
    _quorum("observer_expiry_us", ["observer.expiry.ms"], reading.milliseconds),
    _quorum("batch_bytes_max", ["batch.max.bytes"], reading.count),
    _quorum("segment_bytes", ["metadata.log.segment.bytes", "log.segment.bytes"], reading.count, both=False),
    _quorum("preallocate_bytes", ["log.preallocate.bytes"], reading.count, both=False),
    _quorum("mark_interval_us", ["log.mark.interval.ms"], reading.milliseconds, both=False),
    _quorum("frame_bytes_max", ["socket.request.max.bytes"], reading.count, both=False),
    _quorum("connections_max", ["max.connections"], reading.count, both=False),
    _quorum("connection_idle_us_max", ["connections.max.idle.ms"], reading.milliseconds, both=False),
    _quorum("partial_frame_us_max", ["partial.frame.max.ms"], reading.milliseconds, both=False),
    _quorum("append_queue_records_max", ["append.queue.max.records"], reading.count, both=False),
    _quorum("append_queue_bytes_max", ["append.queue.max.bytes"], reading.positive, both=False),
    _quorum("idle_us_max", ["metadata.max.idle.interval.ms"], reading.milliseconds_or_never, both=False),
    _quorum("snapshot_log_bytes", ["metadata.log.max.record.bytes.between.snapshots"], reading.positive, both=False),
    _quorum(
        "snapshot_interval_us", ["metadata.log.max.snapshot.interval.ms"], reading.milliseconds_or_never, both=False
    ),
    _quorum("retention_bytes", ["metadata.max.retention.bytes"], reading.bytes_or_all, both=False),
    _quorum("retention_us", ["metadata.max.retention.ms"], reading.milliseconds_or_all, both=False),
    _quorum("disk_stall_us_max", ["disk.stall.max.ms"], reading.milliseconds, both=False),
    _quorum("busy_poll_us", ["busy.poll.us"], reading.part_of_a_second, both=False),
)

MEANINGS: Final = {
    "path": "the data directory",
    "node_id": "this node's id; checked against the directory",
    "voters": "ID@HOST:PORT[:DIRID],...; static ones may move to other addresses",
    "cluster_id": "checked against the directory",
    "listen": "where to bind; an empty host means every address",
    "advertise": "where others reach it (default: as the voter set says, or where it listens)",
    "bootstrap": "servers to ask for the leader (default: the voters)",
    "create": "false: an embedded node refuses a directory that is empty or missing (`run` always does)",
    "log": "user or metadata; checked against the directory",
    "topic": "how Kafka's clients see a user log",
    "kernels": "native or pure",
    "controller": "true: brokers register here, and what they ask for is decided by the node that leads "
    "(default: as the directory was formatted)",
    "session_timeout_us": "a controller fences a broker that is silent for this long",
    "older_brokers": "true: a controller also serves brokers of KIP-343 and KIP-380, and tells these what they lead",
    "num_partitions": "a controller's: partitions of a topic that is created without a number",
    "default_replication_factor": "a controller's: replicas of a topic that is created without a number",
    "min_insync_replicas": "a controller's: for topics and brokers that have none configured",
    "unclean_leader_election": "a controller's: true: replicas out of the ISR may lead, where a topic does not say",
    "preferred_leaders": "a controller's: false: it does not see to it that preferred replicas lead",
    "imbalance_check_us": "a controller looks this often for preferred replicas that do not lead",
    "unclean_check_us": "a controller looks this often for partitions that nobody leads",
    "delete_topics": "a controller's: false: topics cannot be deleted",
    "remote_storage": "a controller's: true: brokers have remote storage, and topics may use it",
    "metrics": "HOST:PORT that serves /metrics, /healthz and /readyz by HTTP (default: nowhere)",
    "otel": "URL that metrics are pushed to by OTLP; empty: where OTEL_EXPORTER_OTLP_ENDPOINT says (default: nowhere)",
    "election_timeout_us": "an election waits this long, plus a random part below the same again",
    "fetch_timeout_us": "a leader silent for this long is voted out; one without a majority for 1.5 times that resigns",
    "election_backoff_us_max": "longest wait before the candidates a resigning leader named stand",
    "request_timeout_us": "how long a response is waited for",
    "retry_backoff_us": "wait before a request is made again",
    "fetch_wait_us_max": "how long a leader keeps a Fetch that finds nothing; at most a quarter of the fetch timeout",
    "fetch_bytes_max": "most that one Fetch carries",
    "fetch_snapshot_bytes_max": "most that one FetchSnapshot carries",
    "observer_expiry_us": "an observer that is silent for this long is no longer described",
    "batch_bytes_max": "largest batch",
    "segment_bytes": "a segment that reaches this is closed",
    "preallocate_bytes": "segments are filled with zeros ahead of use, this far",
    "mark_interval_us": "how often the durable mark is renewed",
    "frame_bytes_max": "largest frame",
    "connections_max": "most connections at a time",
    "connection_idle_us_max": "a connection idle for this long is closed",
    "partial_frame_us_max": "a frame that has begun must be whole by then, and an answer read",
    "append_queue_records_max": "most records that wait for their commit",
    "append_queue_bytes_max": "most bytes that wait for their commit",
    "idle_us_max": "a metadata log's leader that appends nothing for so long appends a no-op; 0: never",
    "snapshot_log_bytes": "a controller takes a snapshot after so much of the log",
    "snapshot_interval_us": "or after so long, if anything was committed; 0: never",
    "retention_bytes": "log and snapshots beyond it go, if a later snapshot covers them; 0 or -1: never",
    "retention_us": "what is older goes, if a later snapshot covers it; 0 or -1: never",
    "disk_stall_us_max": "a sync, or a call that holds the interpreter, for longer than this makes a leader resign",
    "busy_poll_us": "the native sockets look for events this long before they sleep: where processors are to spare",
}
"""For people, by name."""

WITHOUT_EFFECT: Final = frozenset(
    (
        # Of Kafka's files for controllers: right there, and decided otherwise here.
        "controller.listener.names",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "num.network.threads",
        "num.io.threads",
        # KIP-595 names a maximum; the backoff here is constant, as Kafka's is.
        "quorum.retry.backoff.max.ms",
        "controller.quorum.retry.backoff.max.ms",
    )
)
_PLAIN_DEFAULTS: Final = {
    "create": "true",
    "kernels": "native",
    "session_timeout_us": "9000",
    "older_brokers": "false",
    "num_partitions": "1",
    "default_replication_factor": "1",
    "min_insync_replicas": "1",
    "unclean_leader_election": "false",
    "preferred_leaders": "true",
    "imbalance_check_us": "300",
    "unclean_check_us": "300000",
    "delete_topics": "true",
    "remote_storage": "false",
}
_AS_ARGUMENT: Final[Mapping[Parse, Parse]] = {**reading.IN_MICROSECONDS, reading.directory: reading.plain_text}
_BY_KEY: Final = {key: setting for setting in SETTINGS for key in setting.keys}
FILE_KEYS: Final = WITHOUT_EFFECT | _BY_KEY.keys()
"""Every key that a file may have."""
_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def variable(key: str) -> str:
    """The environment variable that means this key or argument."""
    return VARIABLE_PREFIX + "".join(char if char.isalnum() else "_" for char in key).upper()


def _by_name(setting: Setting) -> Setting:
    """Return the setting as an argument's: times are in microseconds, as its name ends, not in a file's milliseconds; a
    path is taken as it is, whatever is in it."""
    return setting._replace(parse=_AS_ARGUMENT.get(setting.parse, setting.parse))


VARIABLES: Final = {variable(key): setting for key, setting in _BY_KEY.items()} | {
    variable(name): _by_name(setting) for name, setting in _BY_NAME.items()
}
"""Every environment variable that is a setting."""


def setting_text(setting: Setting, config: QuorumConfig) -> str:
    """A number that a replica runs by, as a file says it."""
    value: int = getattr(config, setting.name)
    return str(value // MS if setting.parse in reading.IN_MICROSECONDS else value)


def default_text(setting: Setting) -> str:
    """Its default as a file says it; empty where the directory or another setting decides."""
    if setting.is_quorum:
        return setting_text(setting, QuorumConfig())
    return _PLAIN_DEFAULTS.get(setting.name, "")


# --- putting sources together -----------------------------------------------------------------------------------------


def from_arguments(values: Mapping[str, object]) -> dict[str, Value]:
    """Settings by name. None means not given. Times are in microseconds here, as the fields' names say."""
    source = SettingsSource("argument", {name: value for name, value in values.items() if value is not None})
    found: dict[str, Value] = {}
    for name, value in source.values.items():
        setting = _BY_NAME.get(name)
        if setting is None:
            raise _unknown(name, source.name, _BY_NAME)
        found[name] = _parsed(_by_name(setting).parse, name, value, source.name)
    return found


def from_file(source: SettingsSource) -> dict[str, Value]:
    """Settings by name, from the dotted keys of a properties or TOML file."""
    return collect(source, _BY_KEY, WITHOUT_EFFECT)


def combine(*layers: Mapping[str, Value]) -> NodeSettings:
    """The first layer that has a setting decides it."""
    merged: dict[str, Value] = {}
    for layer in reversed(layers):
        merged |= layer
    given = frozenset(merged)
    quorum = {name: merged.pop(name) for name in [each.name for each in fields(QuorumConfig)] if name in merged}
    config = QuorumConfig(**quorum)  # type: ignore[arg-type]
    if "fetch_wait_us_max" not in quorum:
        config = replace(config, fetch_wait_us_max=min(config.fetch_wait_us_max, config.fetch_timeout_us // 4))
    _check(config)
    settings = NodeSettings(**merged, quorum=config, given=given)  # type: ignore[arg-type]
    if settings.session_timeout_us is not None:
        check_session(settings.session_timeout_us)
    return settings


def collect(source: SettingsSource, known: Mapping[str, Setting], ignored: frozenset[str]) -> dict[str, Value]:
    """Return the source's values by setting. ConfigError names a key that is not known, or whose value is bad."""
    found: dict[str, Value] = {}
    keys: dict[str, str] = {}
    for key, text in source.values.items():
        if key in ignored:
            continue
        setting = known.get(key)
        if setting is None:
            raise _unknown(key, source.name, known)
        value = _parsed(setting.parse, key, text, source.name)
        if setting.name in found and found[setting.name] != value:
            raise ConfigError(f"contradicts {keys[setting.name]}", "keep one of the two", key, source.name)
        found[setting.name] = value
        keys[setting.name] = key
    return found


def _parsed(parse: Parse, key: str, value: object, source: str) -> Value:
    try:
        return parse(value)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{value!r} cannot be used: {error}", "", key, source) from error


def _unknown(key: str, source: str, known: Mapping[str, object]) -> ConfigError:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return ConfigError("there is no such setting", f"did you mean {near[0]}?" if near else "", key, source)


def _check(config: QuorumConfig) -> None:
    if config.batch_bytes_max <= BATCH_HEADER_BYTES:
        raise ConfigError(
            f"no record fits into a batch of {config.batch_bytes_max} bytes",
            f"its header alone has {BATCH_HEADER_BYTES}",
            "batch_bytes_max",
        )
    if config.batch_bytes_max > config.frame_bytes_max:
        raise ConfigError(
            f"{config.batch_bytes_max} bytes do not fit into a frame of {config.frame_bytes_max}",
            "raise frame_bytes_max with it",
            "batch_bytes_max",
        )
    if config.fetch_wait_us_max > reading.COUNT_MAX * MS:
        raise ConfigError(
            f"a Fetch cannot ask to be parked for {config.fetch_wait_us_max} us",
            f"its time is in milliseconds, {reading.COUNT_MAX} at most",
            "fetch_wait_us_max",
        )
    if config.fetch_wait_us_max >= config.fetch_timeout_us:
        raise ConfigError(
            f"a Fetch parked for {config.fetch_wait_us_max} us would exceed the fetch timeout of "
            f"{config.fetch_timeout_us} us",
            "keep it well below, so that a quiet leader is not taken for a dead one",
            "fetch_wait_us_max",
        )
