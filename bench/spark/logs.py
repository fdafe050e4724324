"""Logs to read: user records, as large as wanted, in files such as a node leaves."""

from pathlib import Path
from typing import Final

from fastquorum.kernels import load
from fastquorum.storage import names

BATCH: Final = 1000
VALUE_BYTES: Final = 100
SEGMENT_BYTES: Final = 128 << 20
_BEGAN_MS: Final = 1_700_000_000_000
_CLUSTER: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_META: Final = "version=1\nnode.id=1\ncluster.id={}\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
_OWN: Final = "format.version=1\nlog.kind=user\ntopic.name=quorum\nlistener.name=CONTROLLER\nkraft.version=0\nvoters=\n"
_STATE: Final = '{"leaderId":-1,"leaderEpoch":1,"votedId":-1,"data_version":0}'
"""In Kafka's form: a node that has records has a file of its epoch."""


def user_log(
    directory: Path, size_bytes: int, *, segment_bytes: int = SEGMENT_BYTES, cluster_id: str = _CLUSTER
) -> int:
    """A data directory with about so many bytes of batches of BATCH values; how many records they are."""
    kernels = load("native")
    log = directory / names.LOG_DIRECTORY
    log.mkdir(parents=True)
    (directory / names.META_PROPERTIES).write_text(_META.format(cluster_id))
    (directory / names.OWN_PROPERTIES).write_text(_OWN)
    (directory / names.KAFKA_STATE).write_text(_STATE)
    values = [bytes([ord("a") + number % 26]) * VALUE_BYTES for number in range(BATCH)]
    offset = written = 0
    while written < size_bytes:
        with (log / names.segment_name(offset)).open("wb") as file:
            while written < size_bytes and file.tell() < segment_bytes:
                batch = kernels.encode_values(
                    values, base_offset=offset, leader_epoch=1, timestamp_ms=_BEGAN_MS + offset
                )
                written += file.write(batch)
                offset += BATCH
    return offset
