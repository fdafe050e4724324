"""The metadata log that is packaged with fastquorum; ORIGIN.md says where it comes from."""

import gzip
import importlib.resources
import struct
from typing import Final

NAME: Final = "kafka-4.3.0-metadata-log.gz"


def carried_records() -> list[bytes]:
    """Its records, in order."""
    packed = importlib.resources.files("fastquorum").joinpath("data", NAME).read_bytes()
    data = gzip.decompress(packed)
    records, position = [], 0
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        records.append(data[position + 4 : position + 4 + size])
        position += 4 + size
    return records
