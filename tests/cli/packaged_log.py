"""Makes the metadata log that `fastquorum demo` carries, from the golden data. Run it to write the file again:

python -m tests.cli.packaged_log
"""

import gzip
import struct
from pathlib import Path

from tests.wire.golden import CLUSTER, log_records

LOG = CLUSTER / "c1" / "__cluster_metadata-0" / "00000000000000000000.log"
PACKAGED = Path(__file__).resolve().parents[2] / "src" / "fastquorum" / "data" / "kafka-4.3.0-metadata-log.gz"


def values() -> list[bytes]:
    """The values of all data records in order; control records are the quorum's own, and are left out."""
    return [record.value for record in log_records(LOG) if not record.control]


def pack(records: list[bytes]) -> bytes:
    """int32 big-endian length and value, one after another, gzip without a time stamp."""
    return gzip.compress(b"".join(struct.pack(">i", len(each)) + each for each in records), 9, mtime=0)


if __name__ == "__main__":
    PACKAGED.write_bytes(pack(values()))
