"""What each file of a data directory is, by its name. Source: `storage.names`; Kafka `LogFileUtils`, `LogManager`."""

import enum
import re
from types import MappingProxyType
from typing import Final

from fastquorum.storage import names


class FileKind(enum.StrEnum):
    """Kinds of files, as the table `files` names them."""

    SEGMENT = "segment"
    INDEX = "index"
    TIME_INDEX = "time index"
    CHECKPOINT = "checkpoint"
    PRODUCERS = "producer snapshot"
    EPOCHS = "epochs"
    MARK = "mark"
    PARTITION = "partition metadata"
    STATE = "quorum state"
    PROPERTIES = "properties"
    BOOTSTRAP = "bootstrap"
    LOCK = "lock"
    BROKER = "broker"
    """A file of a Kafka node that is a broker as well."""
    TEMPORARY = "temporary"
    FOREIGN = "foreign"


_BY_NAME: Final = MappingProxyType(
    {
        names.EPOCH_CHECKPOINT: FileKind.EPOCHS,
        names.DURABLE_MARK: FileKind.MARK,
        names.PARTITION_METADATA: FileKind.PARTITION,
        names.QUORUM_STATE: FileKind.STATE,
        names.KAFKA_STATE.rpartition("/")[2]: FileKind.STATE,
        names.META_PROPERTIES: FileKind.PROPERTIES,
        names.OWN_PROPERTIES: FileKind.PROPERTIES,
        names.BOOTSTRAP_CHECKPOINT: FileKind.BOOTSTRAP,
        names.LOCK: FileKind.LOCK,
        ".kafka_cleanshutdown": FileKind.BROKER,
        "cleaner-offset-checkpoint": FileKind.BROKER,
        "log-start-offset-checkpoint": FileKind.BROKER,
        "recovery-point-offset-checkpoint": FileKind.BROKER,
        "replication-offset-checkpoint": FileKind.BROKER,
    }
)
NO_STATE: Final = "there is no quorum state"
"""The `error` of table `quorum_state` where no file is; with another a file is named in `format`, or the log as a whole
cannot be read."""
_TEMPORARY: Final = (*names.STALE_SUFFIXES, names.RETIRED_SUFFIX)
_PRODUCERS: Final = re.compile(r"\d{20}\.snapshot")


def kind_of(name: str) -> FileKind:
    """Return the kind of a file by its name, without its directory."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.endswith(_TEMPORARY):
        return FileKind.TEMPORARY
    if names.parse_segment(name) is not None:
        return FileKind.SEGMENT
    if names.parse_index(name) is not None:
        return FileKind.INDEX if name.endswith(".index") else FileKind.TIME_INDEX
    if names.parse_checkpoint(name) is not None:
        return FileKind.CHECKPOINT
    return FileKind.PRODUCERS if _PRODUCERS.fullmatch(name) else FileKind.FOREIGN
