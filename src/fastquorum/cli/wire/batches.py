"""Record batches inside of answers, taken apart so that what differs in them has a path of its own."""

import base64
import functools
from collections.abc import Iterator
from typing import Any, Final

from fastquorum.cli.wire.compare import FieldDifference, differences
from fastquorum.errors import CorruptionError
from fastquorum.kernels import BatchInfo, Kernels, load

_NAMES: Final = ("records", "unalignedRecords")


def inside_batches(found: FieldDifference) -> Iterator[FieldDifference]:
    """What differs inside, if both sides are whole batches; else the difference as it is."""
    inner = []
    if found.path.rpartition(".")[2] in _NAMES and isinstance(found.recorded, str) and isinstance(found.now, str):
        one, other = _batches(base64.b64decode(found.recorded)), _batches(base64.b64decode(found.now))
        if one is not None and other is not None:
            inner = list(differences(one, other, found.path))
    yield from inner or [found]  # only packed in another way: the bytes are what differs


@functools.cache
def _kernels() -> Kernels:
    """The pure kernels: speed does not matter here, and these are always installed."""
    return load("pure")


def _batches(data: bytes) -> list[dict[str, Any]] | None:
    """None if they are not whole, or damaged."""
    infos = _kernels().batch_headers(data)
    if sum(info.size_bytes for info in infos) != len(data):
        return None
    try:
        return [_batch(data, info) for info in infos]
    except CorruptionError:
        return None


def _batch(data: bytes, info: BatchInfo) -> dict[str, Any]:
    """In place of the checksum, whether it is right: it differs wherever anything does."""
    return {
        "baseOffset": info.base_offset,
        "lastOffset": info.last_offset,
        "leaderEpoch": info.leader_epoch,
        "attributes": info.attributes,
        "baseTimestamp": info.base_timestamp_ms,
        "maxTimestamp": info.max_timestamp_ms,
        "producerId": info.producer_id,
        "producerEpoch": info.producer_epoch,
        "baseSequence": info.base_sequence,
        "isCrcValid": info.crc_valid,
        "records": [
            {
                "offset": each.offset,
                "timestamp": each.timestamp_ms,
                "key": _text(each.key),
                "value": _text(each.value),
                "headers": [[name, _text(value)] for name, value in each.headers],
            }
            for each in _kernels().decode_records(data, info.position, verify_crc=False)
        ],
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")
