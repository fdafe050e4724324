"""What a Fetch of committed records brings."""

from typing import NamedTuple

from fastquorum.errors import CorruptionError
from fastquorum.kernels import Kernels, Record
from fastquorum.types import Epoch, Offset
from fastquorum.wire.messages.fetch import FetchResponse


class Committed(NamedTuple):
    """Records from an offset on, control records left out, and where to go on."""

    records: list[tuple[Epoch, Record]]
    next_offset: Offset
    high_watermark: Offset


def decoded(kernels: Kernels, answer: FetchResponse.FetchableTopicResponse.PartitionData, offset: Offset) -> Committed:
    """The records of an answer from `offset` on: its first batch may begin below. CorruptionError."""
    data = answer.records or b""
    records: list[tuple[Epoch, Record]] = []
    next_offset = offset
    for info in kernels.batch_headers(data):
        if not info.crc_valid:
            raise CorruptionError("crc", info.position, info.base_offset)
        next_offset = info.last_offset + 1
        if not info.is_control:
            found = kernels.decode_records(data, info.position, verify_crc=False)
            records += [(info.leader_epoch, record) for record in found if record.offset >= offset]
    return Committed(records, next_offset, answer.high_watermark)
