"""Packaged data: a metadata log, and the logs of a whole cluster; ORIGIN.md says where they come from."""

import gzip
import importlib.resources
import io
import struct
import tarfile
from pathlib import Path
from typing import Final

NAME: Final = "kafka-4.3.0-metadata-log.gz"
CLUSTER_NAME: Final = "kafka-4.3.0-cluster.tar.xz"


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


def unpack_cluster(into: Path) -> list[Path]:
    """The data directories of three real controllers, c1, c2 and c3, written into a directory that is there."""
    packed = importlib.resources.files("fastquorum").joinpath("data", CLUSTER_NAME).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:xz") as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None, "it contains files only"
            target = into / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
    return sorted(path for path in into.iterdir() if path.is_dir())
