"""The table `batches`: as kafka-dump-log prints them, bounded, and from damaged logs."""

import gzip
from collections.abc import Callable
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from fastquorum.errors import CorruptionError, DirectoryError, UsageError
from fastquorum.kernels import Attribute, Compression
from fastquorum.spark.scan import TableScan, read_table
from fastquorum.storage.names import LOG_DIRECTORY, segment_name

from .directories import GOLDEN, batch, flip, rows, unsorted, write_log

SMALL = [batch(0, 2), batch(2, 3, epoch=2, timestamp_ms=2000), batch(5, epoch=2, timestamp_ms=3000), batch(6, 4)]
STARTS = [0, *accumulate(len(each) for each in SMALL)]


def dumped(node: str) -> list[dict[str, Any]]:
    """What kafka-dump-log printed of each batch, under our names."""
    found = []
    with gzip.open(GOLDEN / f"dump-{node}.txt.gz", "rt") as lines:
        for line in lines:
            if line.startswith("baseOffset: "):
                words = line.split()
                fields = dict(zip(words[0::2], words[1::2], strict=False))
                found.append(
                    {
                        "position": int(fields["position:"]),
                        "size_bytes": int(fields["size:"]),
                        "base_offset": int(fields["baseOffset:"]),
                        "last_offset": int(fields["lastOffset:"]),
                        "epoch": int(fields["partitionLeaderEpoch:"]),
                        "records": int(fields["count:"]),
                        "max_timestamp": int(fields["CreateTime:"]),
                        "is_control": fields["isControl:"] == "true",
                        "is_transactional": fields["isTransactional:"] == "true",
                        "compression": fields["compresscodec:"],
                        "producer_id": int(fields["producerId:"]),
                        "producer_epoch": int(fields["producerEpoch:"]),
                        "base_sequence": int(fields["baseSequence:"]),
                        "crc": int(fields["crc:"]),
                    }
                )
    return found


def as_dumped(row: dict[str, Any]) -> dict[str, Any]:
    assert row["error"] is None
    kept = {name: -1 if value is None else value for name, value in row.items()}
    for name in ("cluster_id", "node_id", "directory", "segment", "base_timestamp", "error"):
        del kept[name]
    moment: datetime = row["max_timestamp"]
    return kept | {"max_timestamp": round(moment.timestamp() * 1000)}


@pytest.mark.parametrize("node", ["c1", "c2"])
def test_kafkas_batches_are_those_that_kafka_dumped(node: str) -> None:
    assert [as_dumped(row) for row in rows(GOLDEN / node, "batches")] == dumped(node)


def test_every_row_names_its_log() -> None:
    found = rows(GOLDEN, "batches", columns="cluster_id,node_id,directory,segment")
    owners = {tuple(row.values()) for row in found}
    assert owners == {("usACA5tBSrKS64DhDt4jig", node, str(GOLDEN / f"c{node}"), 0) for node in (1, 2, 3)}


def test_only_the_columns_that_were_asked_for_are_there_in_their_order() -> None:
    found = read_table(str(GOLDEN / "c1"), "batches", columns="last_offset,crc,base_offset")
    assert found.column_names == ["last_offset", "crc", "base_offset"]
    whole = read_table(str(GOLDEN / "c1"), "batches")
    assert found == whole.select(found.column_names)


def test_a_log_that_is_cut_into_many_pieces_reads_the_same() -> None:
    assert rows(GOLDEN / "c2", "batches", splitBytes=3000) == rows(GOLDEN / "c2", "batches")


def test_an_object_store_reads_the_same(in_memory: Callable[[Path], str]) -> None:
    there = rows(in_memory(GOLDEN / "c1"), "batches")
    assert {row.pop("directory") for row in there} == {"memory://tables"}
    here = rows(GOLDEN / "c1", "batches")
    for row in here:
        del row["directory"]
    assert there == here


@pytest.mark.parametrize("compression", Compression)
def test_compression_has_its_name(tmp_path: Path, compression: Compression) -> None:
    write_log(tmp_path, {0: [batch(0, 20, attributes=compression)]})
    assert [row["compression"] for row in rows(tmp_path, "batches")] == [compression.name.lower()]


def test_what_a_producer_says_of_itself(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        {0: [batch(0, attributes=Attribute.TRANSACTIONAL, producer_id=2**40, producer_epoch=7, base_sequence=0)]},
    )
    (row,) = rows(tmp_path, "batches")
    fields = {name: row[name] for name in ("producer_id", "producer_epoch", "base_sequence", "is_transactional")}
    assert fields == {"producer_id": 2**40, "producer_epoch": 7, "base_sequence": 0, "is_transactional": True}


def test_who_is_no_producer_is_null(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [batch(0)]})
    (row,) = rows(tmp_path, "batches")
    assert (row["producer_id"], row["producer_epoch"], row["base_sequence"]) == (None, None, None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"fromOffset": 1}, [0, 2, 5, 6]),
        ({"fromOffset": 2}, [2, 5, 6]),
        ({"toOffset": 5}, [0, 2]),
        ({"fromOffset": 3, "toOffset": 6}, [2, 5]),
        ({"asOfOffset": 6, "diffFrom": 5}, [5]),
        ({"fromEpoch": 2}, [2, 5]),
        ({"toEpoch": 2}, [0, 6]),
        ({"fromTimestamp": 2000, "toTimestamp": 3000}, [2]),
        ({"asOfTimestamp": 2000}, [0, 2, 6]),
        ({"fromOffset": 100}, []),
    ],
    ids=str,
)
def test_bounds_keep_whole_batches_that_hold_a_record_within_them(
    tmp_path: Path, options: dict[str, object], expected: list[int]
) -> None:
    write_log(tmp_path, {0: SMALL})
    assert [row["base_offset"] for row in rows(tmp_path, "batches", **options)] == expected


UNSORTED = (5000, 1000, 4000, 6000)
"""Times of records, as clients give them: the first is not the earliest, nor the last the latest."""


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
@pytest.mark.parametrize(
    ("options", "is_kept"),
    [
        ({"toTimestamp": 1000}, False),
        ({"toTimestamp": 1001}, True),
        ({"asOfTimestamp": 999}, False),
        ({"asOfTimestamp": 1000}, True),
        ({"fromTimestamp": 900, "toTimestamp": 1100}, True),
        ({"fromTimestamp": 2000, "toTimestamp": 3000}, False),
        ({"fromTimestamp": 6000}, True),
        ({"fromTimestamp": 6001}, False),
    ],
    ids=str,
)
def test_a_batch_is_kept_for_a_record_that_is_earlier_than_its_first(
    tmp_path: Path, compression: Compression, options: dict[str, object], is_kept: bool
) -> None:
    write_log(tmp_path, {0: [unsorted(0, UNSORTED, compression), batch(4, timestamp_ms=9000)]})
    assert (0 in {row["base_offset"] for row in rows(tmp_path, "batches", **options)}) is is_kept
    found = rows(tmp_path, "records", mode="quarantine", **options)  # they are no metadata
    assert any(row["offset"] < 4 for row in found) is is_kept


@pytest.mark.parametrize("option", ["types", "topic"])
def test_what_cannot_leave_batches_out_is_refused(tmp_path: Path, option: str) -> None:
    write_log(tmp_path, {0: SMALL})
    with pytest.raises(UsageError, match=f"{option} means nothing to table 'batches'"):
        rows(tmp_path, "batches", **{option: "TOPIC_RECORD"})


def test_a_flipped_bit_fails_with_file_position_and_offset(tmp_path: Path) -> None:
    path = write_log(tmp_path, {0: SMALL}) / segment_name(0)
    flip(path, STARTS[2] - 1)
    with pytest.raises(CorruptionError) as raised:
        rows(tmp_path, "batches")
    error = raised.value
    assert (error.reason, error.path, error.position, error.offset) == ("crc", str(path), STARTS[1], 2)


def test_a_flipped_bit_is_set_aside_and_nothing_else(tmp_path: Path) -> None:
    path = write_log(tmp_path, {0: SMALL}) / segment_name(0)
    before = rows(tmp_path, "batches")
    flip(path, STARTS[2] - 1)
    found = rows(tmp_path, "batches", mode="quarantine")
    assert [found[0], *found[2:]] == [before[0], *before[2:]]
    assert (found[1]["position"], found[1]["size_bytes"], found[1]["base_offset"]) == (STARTS[1], len(SMALL[1]), 2)
    assert found[1]["crc"] is None
    assert "crc" in found[1]["error"]


def test_a_flipped_bit_is_left_out_with_a_warning(tmp_path: Path) -> None:
    path = write_log(tmp_path, {0: SMALL}) / segment_name(0)
    flip(path, STARTS[2] - 1)
    with pytest.warns(RuntimeWarning, match=rf"{path}.*{len(SMALL[1])} bytes are left out"):
        found = rows(tmp_path, "batches", mode="drop")
    assert [row["base_offset"] for row in found] == [0, 5, 6]


def test_a_log_that_is_cut_off_at_any_byte_says_so_or_ends_with_a_batch(tmp_path: Path) -> None:
    path = write_log(tmp_path, {0: SMALL}) / segment_name(0)
    whole = path.read_bytes()
    for end in range(1, len(whole)):
        path.write_bytes(whole[:end])
        start = max(each for each in STARTS if each <= end)
        found = rows(tmp_path, "batches", mode="quarantine")
        good = [row["position"] for row in found if row["error"] is None]
        bad = [(row["position"], row["size_bytes"]) for row in found if row["error"] is not None]
        assert good == [each for each in STARTS if each < start]
        # Zeros at the end are room that was laid ahead.
        assert bad == ([(start, end - start)] if any(whole[start:end]) else [])


def test_zeros_that_were_laid_ahead_are_no_batch(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [*SMALL, bytes(5000)]})
    assert len(rows(tmp_path, "batches")) == len(SMALL)


@pytest.mark.parametrize("middle", [None, b""], ids=["missing", "empty"])
def test_a_segment_in_the_middle_that_is_not_there_is_not_overlooked(tmp_path: Path, middle: bytes | None) -> None:
    log = write_log(tmp_path, {0: SMALL[:1], 2: SMALL[1:2], 5: SMALL[2:]})
    if middle is None:
        (log / segment_name(2)).unlink()
    else:
        (log / segment_name(2)).write_bytes(middle)
    with pytest.raises(DirectoryError, match="ends at offset 2, and the next segment begins at 5"):
        rows(tmp_path, "batches")
    found = rows(tmp_path, "batches", mode="quarantine")
    assert [row["base_offset"] for row in found if row["error"] is None] == [0, 5, 6]
    assert len(found) == 4


def test_epochs_that_fall_are_shown_as_they_are(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [batch(0, epoch=5), batch(1, epoch=3), batch(2, epoch=4)]})
    assert [row["epoch"] for row in rows(tmp_path, "batches")] == [5, 3, 4]


def test_a_log_without_a_batch_has_no_row(tmp_path: Path) -> None:
    (tmp_path / LOG_DIRECTORY).mkdir()
    assert rows(tmp_path, "batches") == []
    write_log(tmp_path, {0: []})
    assert rows(tmp_path, "batches") == []


def test_a_segment_that_goes_while_it_is_read_is_missed(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: SMALL})
    scan = TableScan.of({"path": str(tmp_path), "table": "batches"})
    (task,) = scan.tasks()
    (log / segment_name(0)).unlink()
    with pytest.raises(DirectoryError, match="is not there"):
        list(scan.read(task))


def test_foreign_files_are_passed_by(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: SMALL})
    (log / "notes.log").write_bytes(b"no batch")
    (log / "topic-0").mkdir()
    assert len(rows(tmp_path, "batches")) == len(SMALL)
