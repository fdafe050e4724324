"""Logs for the tests of tables: small ones of our own, and copies of them with something wrong."""

from pathlib import Path

from fastquorum.kernels import load
from fastquorum.storage.names import LOG_DIRECTORY, segment_name

RECORDS_A_BATCH = 4


def make_log(root: Path, batches: int = 10, *, roll: int = 0, base: int = 0, kind: str = "user") -> Path:
    """A data directory with batches of RECORDS_A_BATCH records, each its offset; a segment for every `roll` batches."""
    kernels = load("native")
    log = root / LOG_DIRECTORY
    log.mkdir(parents=True)
    (root / "meta.properties").write_text("version=1\ncluster.id=a-cluster\nnode.id=7\n")
    (root / "fastquorum.properties").write_text(f"log.kind={kind}\n")
    path = log / segment_name(base)
    for number in range(batches):
        at = base + number * RECORDS_A_BATCH
        if roll and number % roll == 0:
            path = log / segment_name(at)
        values = [b"%020d" % (at + each) for each in range(RECORDS_A_BATCH)]
        data = kernels.encode_values(values, base_offset=at, leader_epoch=1 + number // 5, timestamp_ms=1000 + number)
        with path.open("ab") as file:
            file.write(data)
    return root


def segments(root: Path) -> list[Path]:
    return sorted((root / LOG_DIRECTORY).glob("*.log"))


def change(path: Path, position: int, data: bytes) -> None:
    """Overwrite some bytes."""
    whole = bytearray(path.read_bytes())
    whole[position : position + len(data)] = data
    path.write_bytes(whole)
