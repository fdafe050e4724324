"""The `.index` file that a closed segment has beside it; kernels.OffsetIndex is its content while the segment is open.

Kafka's entry is (last offset of a batch relative to the segment's base, position of that batch), about one for every
4 KiB of log. The batches are the truth: recovery rebuilds the index from them and reads no index file.
"""

import struct
from itertools import pairwise
from typing import Final

from fastquorum.errors import CorruptionError

ENTRY: Final = struct.Struct(">ii")
RELATIVE_OFFSET_MAX: Final = 2**31 - 1


def decode_index(data: bytes, path: str = "") -> list[tuple[int, int]]:
    """The (relative offset, position) entries of an index file, without the zeros that Kafka preallocates.

    Raises CorruptionError(reason="index") unless they ascend.
    """
    if len(data) % ENTRY.size:
        raise CorruptionError("index", position=len(data), path=path)
    entries: list[tuple[int, int]] = list(ENTRY.iter_unpack(data))
    while entries and entries[-1] == (0, 0):
        entries.pop()
    for at, (a, b) in enumerate(pairwise(entries)):
        if not (a[0] < b[0] and a[1] < b[1]):
            raise CorruptionError("index", position=(at + 1) * ENTRY.size, path=path)
    return entries
