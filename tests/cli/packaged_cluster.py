"""Makes the cluster that `fastquorum spark demo` carries, from the golden data. Run it to write the file again:

python -m tests.cli.packaged_cluster
"""

import io
import lzma
import tarfile
from pathlib import Path

from tests.wire.golden import CLUSTER

PACKAGED = Path(__file__).resolve().parents[2] / "src" / "fastquorum" / "data" / "kafka-4.3.0-cluster.tar.xz"
REPLICAS = ("c1", "c2", "c3")


def files() -> dict[str, bytes]:
    """Every file of the three data directories, by its path from the cluster's own."""
    paths = (path for replica in REPLICAS for path in sorted((CLUSTER / replica).rglob("*")))
    return {str(path.relative_to(CLUSTER)): path.read_bytes() for path in paths if path.is_file()}


def pack(contents: dict[str, bytes]) -> bytes:
    """A tar of them without owners and times, as small as xz makes it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    PACKAGED.write_bytes(pack(files()))
