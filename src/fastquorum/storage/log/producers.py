"""What producers have in a log, read from it. Source: `kernels.producers`."""

from typing import TYPE_CHECKING, Final

from fastquorum.kernels import Kernels

if TYPE_CHECKING:
    from fastquorum.storage.log.log import Log

_READ_BYTES: Final = 1 << 20


def catch_up(log: "Log", kernels: Kernels, bytes_max: int) -> bool:
    """Take in what the log holds that its producers do not know of yet, at most about so many bytes; True once that is
    all. What was removed from the log's beginning before it was taken in, or after a truncation took it back, is not
    known any more.

    CorruptionError if it cannot be read.
    """
    producers = log.producers
    if producers.end_offset < log.start_offset:
        producers.begin_anew(log.start_offset)
    while (base_offset := producers.end_offset) < log.end_offset:
        if bytes_max <= 0:
            return False
        data = log.read(base_offset, min(_READ_BYTES, bytes_max))
        bytes_max -= len(data)
        producers.read(data, base_offset, kernels.scan(data, verify_crc=False).next_offset)
    return True
