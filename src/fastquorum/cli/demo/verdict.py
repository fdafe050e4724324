"""The verdict: what the closed disks hold, against what the quorum acknowledged. It trusts the disks only."""

from collections.abc import Sequence
from typing import NamedTuple

from fastquorum.cli.demo.appender import Acknowledged
from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.offline import OfflineLog, StoredBatch
from fastquorum.types import Offset
from fastquorum.wire.records.control import ControlRecordType, control_type
from fastquorum.wire.records.metadata import decode_metadata_record


class ReadBackLog(NamedTuple):
    """One disk's log: its batches' bytes, its data records by offset, and what was wrong with it."""

    directory: str
    data: bytes
    records: dict[Offset, bytes | None]
    elections: int
    problems: list[str]


class DemoVerdict(NamedTuple):
    """What came of it. No problems: nothing lost, nothing twice, the logs alike, and all disks sound."""

    lost: int
    duplicated: int
    elections: int
    replicas_identical: bool
    problems: list[str]
    image: Image
    """What the acknowledged records come to."""


def judge(directories: Sequence[str], ledger: Sequence[Acknowledged], kernels: Kernels) -> DemoVerdict:
    """Look every acknowledged record up on every disk; compare the disks. Damage is a verdict, not an error."""
    replicas = [_read(directory, kernels) for directory in directories]
    problems = [problem for replica in replicas for problem in replica.problems]
    promised = {each.offset for each in ledger}
    lost, surplus = set(), 0
    for replica in replicas:
        missing = [each for each in ledger if replica.records.get(each.offset) != each.value]
        lost |= {each.offset for each in missing}
        if missing:
            problems.append(
                f"{replica.directory}: {len(missing)} acknowledged records are missing or changed, the first at offset "
                f"{missing[0].offset}"
            )
        unasked = sorted(replica.records.keys() - promised)
        surplus = max(surplus, len(unasked))
        if unasked:
            problems.append(
                f"{replica.directory}: {len(unasked)} records were never acknowledged or are there twice, the first at "
                f"offset {unasked[0]}"
            )
    if len(promised) != len(ledger):
        problems.append(f"{len(ledger) - len(promised)} records were acknowledged at an offset of another")
    identical = all(replica.data == replicas[0].data for replica in replicas)
    if not identical:
        problems.append(f"the logs differ: {', '.join(f'{len(each.data)} bytes' for each in replicas)}")
    return DemoVerdict(
        lost=len(lost),
        duplicated=surplus,
        elections=max(replica.elections for replica in replicas),
        replicas_identical=identical,
        problems=problems,
        image=_image_of(ledger),
    )


def _read(directory: str, kernels: Kernels) -> ReadBackLog:
    parts: list[bytes] = []
    records: dict[Offset, bytes | None] = {}
    elections = 0
    problems: list[str] = []
    try:
        for batch in checked_log(directory, kernels, problems).batches():
            parts.append(batch.data)
            elections += elections_in(batch, kernels)
            if not batch.info.is_control:
                records |= {record.offset: record.value for record in kernels.decode_records(batch.data)}
    except FastQuorumError as error:
        problems.append(str(error))
    return ReadBackLog(directory, b"".join(parts), records, elections, problems)


def _image_of(ledger: Sequence[Acknowledged]) -> Image:
    fold = Fold()
    for each in ledger:
        record, _ = decode_metadata_record(each.value)
        fold.add(each.offset, record, epoch=0, timestamp_ms=0)
    return fold.image


def checked_log(directory: str, kernels: Kernels, problems: list[str]) -> OfflineLog:
    """Open and verify a closed disk's log; what is wrong with it is added to `problems`. FastQuorumError."""
    log = open_offline(directory, kernels)
    seen = log.verify()
    problems += [f"{each.path}: {each.text}" for each in seen.findings if each.severity != "note"]
    if not seen.is_closed:
        problems.append(f"{directory}: its log was not closed")
    return log


def elections_in(batch: StoredBatch, kernels: Kernels) -> int:
    """Count the elections that a batch tells of."""
    if not batch.info.is_control:
        return 0
    keys = (record.key for record in kernels.decode_records(batch.data) if record.key is not None)
    return sum(control_type(key) is ControlRecordType.LEADER_CHANGE for key in keys)
