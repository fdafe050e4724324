"""`files`: what is on disk, verified: every file of each directory, and those that are missing.

What is wrong with a file is what this table is about: it is a row in every mode. The judgement is that of
`storage.verifying`; segments behind a damaged one, which no log reaches any more, are judged one by one.
"""

import enum
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.errors import DirectoryError, FastQuorumError
from fastquorum.kernels import Kernels, load
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.file_kinds import FileKind, kind_of
from fastquorum.spark.stored.logs import FoundLog, LogFault
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.store_disk import disk_of
from fastquorum.spark.stored.stores import Entry
from fastquorum.spark.tables.quorum_state import read_state
from fastquorum.spark.tables.table import LogTable, Row
from fastquorum.storage import names
from fastquorum.storage.findings import Finding, Severity
from fastquorum.storage.identity import read_identity
from fastquorum.storage.log.checkpoint import read_checkpoint
from fastquorum.storage.offline import OfflineLog
from fastquorum.storage.ports import Disk
from fastquorum.storage.verifying import CheckedSegment, Verification, check_segment

FIELDS: Final = (
    *arrow.fields(pa.string(), "name", "kind", nullable=False),
    *arrow.fields(pa.int64(), "size_bytes", "first_offset", "last_offset", "batches", "records", "zero_tail_bytes"),
    pa.field("torn_bytes", pa.int64()),
    pa.field("status", pa.string(), nullable=False),
    pa.field("text", pa.string()),
)


class Status(enum.StrEnum):
    """What a file is to whoever starts on its directory."""

    GOOD = "good"
    UNCHECKED = "unchecked"
    """Nothing in here can tell; or it was not come to, as `text` says."""
    TORN = "torn"
    """The end of an interrupted write: the next start cuts it off."""
    CORRUPT = "corrupt"
    """Bytes that were whole once are damaged, or a file that has to be there is not."""
    OUTDATED = "outdated"
    """Derived from the log, and not as the log is: it is made anew."""
    MISSING = "missing"
    """Derived, likewise."""
    LEFT_OVER = "left over"
    """It holds nothing that counts any more."""
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"


_CHECKED: Final = frozenset(
    {FileKind.SEGMENT, FileKind.INDEX, FileKind.CHECKPOINT, FileKind.EPOCHS, FileKind.MARK, FileKind.BOOTSTRAP}
)
_DERIVED: Final = frozenset({FileKind.INDEX, FileKind.EPOCHS, FileKind.MARK})


class _Judged(NamedTuple):
    status: Status
    text: str | None = None


class _Seen(NamedTuple):
    """A directory, and what verification says of it."""

    log: FoundLog
    disk: Disk
    inside: str
    """The log's directory on the disk."""
    verification: Verification
    findings: dict[str, list[Finding]]
    """By path."""
    kernels: Kernels


def _rows(log: FoundLog, options: ReadOptions) -> Iterator[Row]:
    disk, inside = disk_of(log)
    kernels = load("native")
    try:
        verification = OfflineLog(disk, kernels, inside).verify()
    except DirectoryError as error:
        yield from _unverified(log, error)
        return
    findings: dict[str, list[Finding]] = {}
    for finding in verification.findings:
        findings.setdefault(finding.path, []).append(finding)
    seen = _Seen(log, disk, inside, verification, findings, kernels)
    for entry in log.files:
        if entry.error is not None and kind_of(entry.name) is not FileKind.FOREIGN:
            yield {**_named(log, entry), "status": Status.UNREADABLE, "text": str(entry.error)}
            continue
        try:
            yield {**_named(log, entry), **_file(seen, entry)}
        except DirectoryError as error:
            yield {**_named(log, entry), "status": Status.UNREADABLE, "text": str(error)}
    for path in findings.keys() - {entry.path for entry in log.files}:
        yield _missing(log, path, findings[path])


def _unverified(log: FoundLog, error: DirectoryError) -> Iterator[Row]:
    for entry in log.files:
        status = Status.UNREADABLE if entry.path == error.path else Status.UNCHECKED
        yield {**_named(log, entry), "status": status, "text": str(error)}


def _named(log: FoundLog, entry: Entry) -> dict[str, Any]:
    name = entry.path.removeprefix(f"{log.directory}/")
    return {"name": name, "kind": kind_of(entry.name), "size_bytes": entry.size_bytes}


def _missing(log: FoundLog, path: str, findings: list[Finding]) -> Row:
    is_harmless = all(finding.severity is Severity.NOTE for finding in findings)
    return {
        "name": path.removeprefix(f"{log.directory}/"),
        "kind": kind_of(path.rpartition("/")[2]),
        "status": Status.MISSING if is_harmless else Status.CORRUPT,
        "text": _texts(findings),
    }


def _texts(findings: list[Finding]) -> str | None:
    return "; ".join(finding.text for finding in findings) or None


# --- one file ---------------------------------------------------------------------------------------------------------


def _file(seen: _Seen, entry: Entry) -> Row:
    kind = kind_of(entry.name)
    if kind is FileKind.SEGMENT:
        return _segment(seen, entry)
    status, text = _judged(seen, entry, kind)
    return {"status": status, "text": text}


def _judged(seen: _Seen, entry: Entry, kind: FileKind) -> _Judged:
    findings = seen.findings.get(entry.path, [])
    text = _texts(findings)
    if any(finding.severity is Severity.CORRUPT for finding in findings):
        return _Judged(Status.CORRUPT, text)
    match kind:
        case FileKind.FOREIGN:
            return _Judged(Status.FOREIGN, "neither Kafka's nor ours")
        case FileKind.TEMPORARY:
            return _Judged(Status.LEFT_OVER, text or _why_left(entry))
        case FileKind.STATE:
            return _readable(lambda: read_state(seen.log, entry))
        case FileKind.BOOTSTRAP:
            name = entry.path.removeprefix(f"{seen.log.directory}/")
            return _readable(lambda: read_checkpoint(seen.disk, seen.kernels, name))
        case FileKind.PROPERTIES:
            return _readable(lambda: read_identity(seen.disk), DirectoryError)
        case FileKind.INDEX if names.parse_index(entry.name) not in _bases(seen.log):
            return _Judged(Status.LEFT_OVER, text)
        case FileKind.INDEX if names.parse_index(entry.name) not in seen.verification.segments and not findings:
            return _Judged(Status.UNCHECKED, "the log ends before its segment, in damage")
        case FileKind.MARK if seen.verification.mark is not None:
            return _Judged(Status.GOOD, text)
    if kind in _DERIVED and findings:
        return _Judged(Status.OUTDATED, text)
    return _Judged(Status.GOOD if kind in _CHECKED else Status.UNCHECKED, text)


def _why_left(entry: Entry) -> str:
    if entry.name.endswith(names.RETIRED_SUFFIX):
        return "a handover has taken over what it says"
    return "left over from an interrupted write; the next start removes it"


def _readable(read: Callable[[], object], refusal: type[FastQuorumError] = FastQuorumError) -> _Judged:
    try:
        read()
    except refusal as error:
        return _Judged(Status.CORRUPT, str(error))
    return _Judged(Status.GOOD)


def _bases(log: FoundLog) -> set[int]:
    return {each.base_offset for each in log.segments}


def _segment(seen: _Seen, entry: Entry) -> Row:
    base = names.parse_segment(entry.name)
    assert base is not None
    findings = seen.findings.get(entry.path, [])
    mark = seen.verification.mark
    if mark is not None and (mark.is_anew or base < mark.start_offset):
        begin = mark.at.offset if mark.is_anew else mark.start_offset
        return {"status": Status.LEFT_OVER, "text": _texts(findings) or f"the log begins at {begin} now"}
    checked = seen.verification.segments.get(base)
    if checked is not None:
        status, text = _severest(findings), _texts(findings)
    else:
        checked = check_segment(seen.disk, seen.kernels, names.join(seen.inside, entry.name), base)
        status, text = _by_itself(seen, base, checked, findings)
    return {**_counts(base, checked), "status": status, "text": text}


def _severest(findings: list[Finding]) -> Status:
    severities = {finding.severity for finding in findings}
    if Severity.CORRUPT in severities:
        return Status.CORRUPT
    return Status.TORN if Severity.TORN in severities else Status.GOOD


def _by_itself(seen: _Seen, base: int, checked: CheckedSegment, findings: list[Finding]) -> _Judged:
    """Judge a segment that verification has not reached."""
    if findings:
        return _Judged(_severest(findings), _texts(findings))
    text = "by itself; the log ends before it, in damage"
    if not checked.torn_bytes:
        return _Judged(Status.GOOD, text)
    is_last = base == max(_bases(seen.log)) and not checked.has_batch_behind
    reason = checked.scan.fault.reason if checked.scan.fault is not None else "truncated"
    return _Judged(Status.TORN if is_last else Status.CORRUPT, f"bad batch: {reason}; {text}")


def _counts(base: int, checked: CheckedSegment) -> Row:
    scan = checked.scan
    return {
        "first_offset": base if scan.batch_count else None,
        "last_offset": scan.next_offset - 1 if scan.batch_count else None,
        "batches": scan.batch_count,
        "records": scan.record_count,
        "zero_tail_bytes": checked.zero_bytes,
        "torn_bytes": checked.torn_bytes,
    }


def unreadable(fault: LogFault) -> Row:
    """A directory that cannot be looked into."""
    return {"name": "", "kind": FileKind.FOREIGN, "status": Status.UNREADABLE, "text": str(fault.error)}


FILES: Final = LogTable("files", FIELDS, _rows)
