"""Golden logs and checkpoints of Apache Kafka, folded."""

from pathlib import Path

from fastquorum.controller.image.fold import Fold
from fastquorum.types import Offset
from fastquorum.wire.records.metadata import decode_metadata_record
from tests.wire.golden import CLUSTER, log_records

LOG = "__cluster_metadata-0"
CHECKPOINTS = sorted(
    path.name for path in (CLUSTER / "c1" / LOG).glob("*.checkpoint") if not path.name.startswith("0" * 20)
)


def folded(path: Path, end_offset: Offset = 1 << 62) -> Fold:
    """The records of a file below end_offset; epochs and times are not told apart here."""
    fold = Fold()
    for record in log_records(path):
        if record.offset >= end_offset:
            break
        if record.control:
            fold.skip(record.offset + 1, 1, 1)
        else:
            fold.add(record.offset, decode_metadata_record(record.value)[0], 1, 1)
    return fold
