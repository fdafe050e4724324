"""Logs for the tests of tables: small ones of our own, and copies of them with something wrong."""

from collections.abc import Callable
from pathlib import Path

from fastquorum.kernels import BatchInfo, load
from fastquorum.storage.names import LOG_DIRECTORY, segment_name

RECORDS_A_BATCH = 4
_CRC_END = 21


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


def change_record(path: Path, offset: int, changed: Callable[[bytes], bytes]) -> BatchInfo:
    """Write a record's value anew, with its batch as good as before; the header of the batch as it was."""
    kernels, whole = load("native"), path.read_bytes()
    batch = _batch_of(whole, offset)
    values = [bytes(each) for each in kernels.decode_values(whole, batch.position)]
    at = offset - batch.base_offset
    values[at] = changed(values[at])
    times = {"timestamp_ms": batch.base_timestamp_ms}
    anew = kernels.encode_values(values, base_offset=batch.base_offset, leader_epoch=batch.leader_epoch, **times)
    path.write_bytes(whole[: batch.position] + anew + whole[batch.position + batch.size_bytes :])
    return batch


def flip(path: Path, offset: int, at: int, bits: int) -> None:
    """Change a byte of the batch that holds a record, and make its checksum good again."""
    whole = bytearray(path.read_bytes())
    batch = _batch_of(bytes(whole), offset)
    begin, end = batch.position, batch.position + batch.size_bytes
    whole[begin + at] ^= bits
    crc = load("native").crc32c(bytes(whole[begin + _CRC_END : end]))
    whole[begin + _CRC_END - 4 : begin + _CRC_END] = crc.to_bytes(4, "big")
    path.write_bytes(whole)


def _batch_of(whole: bytes, offset: int) -> BatchInfo:
    headers = load("native").batch_headers(whole)
    return next(each for each in headers if each.base_offset <= offset <= each.last_offset)
