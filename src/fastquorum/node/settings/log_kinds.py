"""Which settings a log heeds, by what it holds: one that would have no effect is refused, not passed over. Pure."""

from typing import Final

from fastquorum.errors import ConfigError
from fastquorum.node.settings.settings import NodeSettings
from fastquorum.storage.identity import LogKind

_METADATA_ONLY: Final = ("retention_bytes", "retention_us", "snapshot_log_bytes", "snapshot_interval_us")
CONTROLLER_SETTINGS: Final = (
    "session_timeout_us",
    "older_brokers",
    "num_partitions",
    "default_replication_factor",
    "min_insync_replicas",
    "unclean_leader_election",
    "delete_topics",
    "remote_storage",
)
"""Settings of a node that are `ControllerSettings`' under the same names."""
_CONTROLLER_ONLY: Final = (*CONTROLLER_SETTINGS, "preferred_leaders", "imbalance_check_us", "unclean_check_us")


def log_kind_of(settings: NodeSettings) -> LogKind:
    """What an empty directory is formatted for."""
    if settings.log is not None:
        return settings.log
    return LogKind.METADATA if settings.controller else LogKind.USER


def check_log_kind(settings: NodeSettings, log_kind: LogKind, *, is_controller: bool) -> None:
    """Raise ConfigError for settings that a log of this kind does not heed."""
    if log_kind is LogKind.METADATA:
        return
    if is_controller:
        raise ConfigError(
            "it keeps Kafka's metadata, and this is a user log",
            "format another directory with `--controller`",
            "controller",
        )
    for name in _METADATA_ONLY:
        if name in settings.given and not _is_never(settings, name):
            raise ConfigError(
                "a user log keeps all records, and takes no snapshots",
                "leave it out; only a controller's metadata log forgets what its snapshots cover",
                name,
            )
    for name in _CONTROLLER_ONLY:
        if name in settings.given and getattr(settings, name) is not False:
            raise ConfigError(
                "only a controller heeds it, and this is a user log",
                "leave it out; `controller` makes a node a controller",
                name,
            )


def _is_never(settings: NodeSettings, name: str) -> bool:
    """It asks for what a user log does anyway."""
    return name != "snapshot_log_bytes" and getattr(settings.quorum, name) <= 0
