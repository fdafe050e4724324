"""Every error a user can meet. Structured fields first; the message is built from them.

A class also inherits the built-in that fits. Foreign exceptions are mapped to these at the port where they arise.
"""

import errno
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

from fastquorum.errnos import FULL, REFUSALS, remedy
from fastquorum.types import Endpoint, Epoch, NodeId, Offset


@dataclass(eq=False)
class FastQuorumError(Exception):
    """Base of all. Subclasses are dataclasses whose `template` is formatted with their fields."""

    template: ClassVar[str] = ""
    exit_code: ClassVar[int] = 1
    """What the command line exits with."""

    def __post_init__(self) -> None:
        super().__init__(str(self))

    def __str__(self) -> str:
        return self.template.format(**self.as_fields())

    def as_fields(self) -> dict[str, Any]:
        """The structured fields, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.as_fields().values())

    def __eq__(self, other: object) -> bool:
        """The same error with the same fields."""
        if not isinstance(other, FastQuorumError):
            return NotImplemented
        return type(self) is type(other) and self.as_fields() == other.as_fields()

    def __hash__(self) -> int:
        return hash(type(self))  # fields may still be filled in on the way up


# --- the caller broke the API -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class UsageError(FastQuorumError, ValueError):
    """The caller broke the API; `detail` says how, `hint` what to do."""

    detail: str
    hint: str = ""
    exit_code: ClassVar[int] = 2

    def __str__(self) -> str:
        return f"{self.detail}; {self.hint}" if self.hint else self.detail


@dataclass(eq=False)
class ConfigError(UsageError):
    """A configuration key is unknown or its value is bad. `key` and `source` (argument, file, environment) name it."""

    key: str = ""
    source: str = ""

    def __str__(self) -> str:
        where = f" ({self.source})" if self.source else ""
        return f"{self.key}{where}: {super().__str__()}" if self.key else super().__str__()


@dataclass(eq=False)
class VoterCountError(UsageError):
    """A voter list is empty, or longer than what a quorum is formatted with (VOTERS_MAX)."""

    detail: str = ""
    count: int = 0


@dataclass(eq=False)
class RecordTooLarge(UsageError):
    """A record, or an atomic group of records, does not fit into one batch. Refused before anything is appended."""

    detail: str = ""
    size_bytes: int = 0
    limit_bytes: int = 0

    def __str__(self) -> str:
        return self.detail or f"{self.size_bytes} bytes do not fit into one batch of at most {self.limit_bytes}"


@dataclass(eq=False)
class ClosedError(UsageError):
    """The handle was closed, or is used in a forked child, where it can never work."""


@dataclass(eq=False)
class OffsetOutOfRange(UsageError):
    """An offset lies outside [start_offset, end_offset]."""

    detail: str = ""
    offset: Offset = -1
    start_offset: Offset = -1
    end_offset: Offset = -1

    def __str__(self) -> str:
        return self.detail or f"offset {self.offset} lies outside {self.start_offset}..{self.end_offset}"


@dataclass(eq=False)
class OutOfOrderSequence(UsageError):
    """A producer's batch is neither its next nor one of its last (KIP-98). Nothing was appended."""

    detail: str = ""
    producer_id: int = -1
    sequence: int = -1
    expected_sequence: int = -1
    wire_code: ClassVar[int] = 45

    def __str__(self) -> str:
        return self.detail or (
            f"producer {self.producer_id} appends sequence {self.sequence}, its next is {self.expected_sequence}: "
            "another process appends with its id, or records in between were lost before they were sent"
        )


@dataclass(eq=False)
class SequenceReused(OutOfOrderSequence):
    """A producer's batch has the sequences of one that is in the log, and other values. Nothing was appended."""

    offset: Offset = -1
    """Where the batch lies that has them."""

    def __str__(self) -> str:
        return self.detail or (
            f"producer {self.producer_id} has appended other values from sequence {self.sequence} on, at offset "
            f"{self.offset}: a retry must have the same values, and new values continue with sequence "
            f"{self.expected_sequence}"
        )


@dataclass(eq=False)
class UnknownProducer(UsageError):
    """A batch of a producer whose id this quorum has not given out. Nothing was appended."""

    detail: str = ""
    producer_id: int = -1
    wire_code: ClassVar[int] = 59

    def __str__(self) -> str:
        return self.detail or (
            f"producer id {self.producer_id} was not issued by this quorum: get one from it (InitProducerId)"
        )


@dataclass(eq=False)
class ProducerFenced(UsageError):
    """A newer instance of the producer has appended (KIP-98): nothing of this epoch will be appended any more."""

    detail: str = ""
    producer_id: int = -1
    epoch: int = -1
    current_epoch: int = -1
    wire_code: ClassVar[int] = 47

    def __str__(self) -> str:
        return self.detail or (
            f"epoch {self.epoch} of producer {self.producer_id} is over, the producer is at epoch "
            f"{self.current_epoch}: stop, another instance has taken over"
        )


@dataclass(eq=False)
class ReplayDiffers(UsageError):
    """A repeated write differs from the first one: other rows, or the same rows in another order. Nothing more was
    appended."""

    detail: str

    def __str__(self) -> str:
        return self.detail


@dataclass(eq=False)
class DirectoryError(UsageError):
    """A data directory cannot be used as asked: foreign, unformatted, locked, read-only, newer format. `path` names
    it."""

    path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {super().__str__()}" if self.path else super().__str__()


@dataclass(eq=False)
class RegistrationRefused(UsageError):
    """The controllers will never take this broker in as it is: another cluster, directories or features."""

    detail: str = ""
    broker_id: NodeId = -1
    error: str = ""
    """Kafka's name of it, as INCONSISTENT_CLUSTER_ID."""

    def __str__(self) -> str:
        return self.detail or f"the controllers do not register broker {self.broker_id}: {self.error}"


@dataclass(eq=False)
class SparkEnvironmentError(UsageError):
    """Spark cannot run here as things are: no Java, a package is missing, or versions do not fit."""


# --- right, but not now -----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class RetriableError(FastQuorumError):
    """The request was right; try again, here or elsewhere."""

    exit_code: ClassVar[int] = 3


@dataclass(eq=False)
class NotLeader(RetriableError):
    """This replica does not lead. `leader_id` is -1 while no leader is known."""

    leader_id: NodeId = -1
    epoch: Epoch = -1
    endpoint: Endpoint | None = None
    maybe_committed: bool = False
    """True if the append had reached this replica's log before leadership was lost: it may still commit."""
    hindrance: str = ""
    """What keeps this node from leading, and what to do about it; empty if nothing does."""

    def __str__(self) -> str:
        text = f"this node does not lead epoch {self.epoch}"
        if self.hindrance:
            text += f" ({self.hindrance})"
        if self.leader_id < 0:
            return f"{text}, and no leader is known: retry after the election"
        at = f" at {self.endpoint.address}" if self.endpoint else ""
        return f"{text}: ask node {self.leader_id}{at}"


@dataclass(eq=False)
class Overloaded(RetriableError):
    """A bounded queue is full. Retry after `retry_after_s` seconds."""

    reason: str = ""
    retry_after_s: float = 0.0
    template: ClassVar[str] = "overloaded: {reason}; retry after {retry_after_s} s"


@dataclass(eq=False)
class AppendTimeout(RetriableError, TimeoutError):
    """The append was not committed in time. It may still commit (`maybe_committed`)."""

    timeout_s: float = 0.0
    maybe_committed: bool = True

    def __str__(self) -> str:
        fate = "it may still commit" if self.maybe_committed else "it was not appended"
        return f"not committed within {self.timeout_s} s; {fate}"


@dataclass(eq=False)
class NotReady(RetriableError, TimeoutError):
    """The quorum was not ready (leader known, high watermark valid) in time."""

    reason: str = ""
    template: ClassVar[str] = "the quorum is not ready: {reason}"


@dataclass(eq=False)
class NotAdmitted(NotReady):
    """This broker was not let act in time. It goes on trying."""

    template: ClassVar[str] = "the broker is not active: {reason}"


@dataclass(eq=False)
class Fenced(RetriableError):
    """This member of the cluster may not act now, or not under this epoch any more. Nothing was done, as a rule."""

    broker_id: NodeId = -1
    epoch: int = -1
    """That was asked about; -1 if the member has none."""
    reason: str = ""
    maybe_done: bool = False
    """True if work that was let begin hears of it: the program knows how far it had come."""
    template: ClassVar[str] = "broker {broker_id} may not act under epoch {epoch}: {reason}"


# --- a peer broke the protocol ----------------------------------------------------------------------------------------


@dataclass(eq=False)
class PeerProtocolError(FastQuorumError):
    """A peer broke the protocol. The wire error code sits on the class, once."""

    detail: str
    wire_code: ClassVar[int] = 42
    template: ClassVar[str] = "{detail}"


@dataclass(eq=False)
class FrameError(PeerProtocolError):
    """A frame's length prefix is negative or over the limit, decided from its 4 bytes."""

    detail: str = ""
    length: int = 0
    limit: int = 0

    def __str__(self) -> str:
        return self.detail or f"frame length {self.length} is outside 0..{self.limit} bytes"


@dataclass(eq=False)
class WireError(PeerProtocolError):
    """A message's bytes do not decode, or a value cannot be encoded. `message`, `version`, `field` and `position` name
    it."""

    message: str = ""
    version: int = -1
    field: str = ""
    position: int = -1

    def __str__(self) -> str:
        where = f"{self.message} v{self.version}" if self.message else "message"
        field = f" field {self.field}" if self.field else ""
        position = f" at byte {self.position}" if self.position >= 0 else ""
        return f"{where}{field}{position}: {self.detail}"


@dataclass(eq=False)
class UnsupportedVersion(WireError):
    """This API, or this version of it, is not supported here."""

    detail: str = ""
    api_key: int = -1
    wire_code: ClassVar[int] = 35


# --- bytes failed a check ---------------------------------------------------------------------------------------------


@dataclass(eq=False)
class CorruptionError(FastQuorumError):
    """Bytes failed a check. `reason` is a fixed word (see kernels.BatchFault); -1 fields are not known."""

    reason: str
    position: int = -1
    """Byte position in the buffer or file where the bad batch starts."""
    offset: Offset = -1
    """Base offset that the bad bytes claim."""
    stored_crc: int = -1
    computed_crc: int = -1
    path: str = ""
    detail: str = ""
    """More about it, for people."""
    wire_code: ClassVar[int] = 2
    exit_code: ClassVar[int] = 4

    def __str__(self) -> str:
        text = f"corrupt: {self.reason}"
        if self.path:
            text = f"{self.path}: {text}"
        if self.position >= 0:
            text += f" at byte {self.position}"
        if self.offset >= 0:
            text += f" (offset {self.offset})"
        if self.stored_crc >= 0:
            text += f", stored crc {self.stored_crc:#010x}, computed {self.computed_crc:#010x}"
        return f"{text}: {self.detail}" if self.detail else text


@dataclass(eq=False)
class DecompressedTooLarge(CorruptionError):
    """A compressed batch is larger than the cap when decompressed."""

    reason: str = "decompressed_size"
    limit_bytes: int = 0


# --- the replica must stop --------------------------------------------------------------------------------------------


@dataclass(eq=False)
class FatalError(FastQuorumError):
    """The replica must stop and claims nothing more."""

    detail: str
    template: ClassVar[str] = "{detail}"
    exit_code: ClassVar[int] = 5


_LOOKING: Final = ("open", "list", "read", "stat")
"""Operations that change nothing, and are those of commands that only read, too."""


@dataclass(eq=False)
class StorageFailed(FatalError, OSError):
    """A write, sync or directory operation failed: what the disk holds is unknown, unless it only looked. Never
    retried."""

    detail: str = ""
    operation: str = ""
    path: str = ""
    errno_code: int = 0

    def __str__(self) -> str:
        todo = remedy(self.errno_code) or remedy(errno.EIO)
        if self.operation in _LOOKING:
            return f"{self.operation} of {self.path} failed: {self.detail}; {todo}, and try again"
        todo += ", and start the process again"
        if self.is_refusal:
            return f"{self.operation} of {self.path} failed: {self.detail}; the replica stops: {todo}"
        if self.errno_code in FULL:
            todo += ", nothing else is needed"
        return (
            f"{self.operation} of {self.path} failed: {self.detail}; the replica stops, because the content of the "
            f"disk is no longer known: {todo}"
        )

    @property
    def is_refusal(self) -> bool:
        """This user may not do it, no user may, as the file system is read-only, or what is there is not a file."""
        return self.errno_code in REFUSALS

    @property
    def lacks_descriptor(self) -> bool:
        """A file could not be opened: a write or a sync never fails like this."""
        return self.errno_code in (errno.EMFILE, errno.ENFILE)

    @property
    def lacks_room(self) -> bool:
        """The file system is full, or a quota is, or this process may not make its file larger: what was to be written
        is not there, and all else is as it was."""
        return self.errno_code in FULL

    @property
    def can_wait(self) -> bool:
        """Nothing has changed, and it may go well later: when there is room, or a descriptor."""
        return self.lacks_room or self.lacks_descriptor


@dataclass(eq=False)
class FsyncFailed(StorageFailed):
    """fsync or fdatasync failed (fail-stop; README, decision 3)."""

    @property
    def lacks_descriptor(self) -> bool:
        """Final, whatever the error's number."""
        return False

    @property
    def lacks_room(self) -> bool:
        """Final, too: what was written before may be lost."""
        return False


@dataclass(eq=False)
class DirectoryReplaced(StorageFailed):
    """Another directory lies at a replica's path than the one that it has opened: renamed away, or mounted over."""

    def __str__(self) -> str:
        return (
            f"{self.path}: this is no longer the directory that was opened; the replica stops, and writes nothing into "
            "it: put back the directory that it ran on, which has all records, and start it again, or start it on "
            "this one"
        )


@dataclass(eq=False)
class StateStoreFailed(StorageFailed):
    """The quorum state could not be made durable: a vote may or may not have been cast."""

    @property
    def lacks_room(self) -> bool:
        """Final, for want of room, too."""
        return False


@dataclass(eq=False)
class ProtocolFatal(FatalError):
    """The protocol's own rules say this replica cannot go on (for example a divergence below its high watermark)."""


@dataclass(eq=False)
class ImageFailed(FatalError):
    """The metadata image cannot take in a record, or cannot be written at its metadata.version.

    No snapshot is made of such an image. `offset` is the record's in the log, or its place among those given; -1 if the
    image as a whole is meant.
    """

    detail: str = ""
    record: str = ""
    """The record's type in the spelling of Kafka's tools: `PARTITION_RECORD`."""
    offset: Offset = -1

    def __str__(self) -> str:
        if not self.record:
            return f"metadata image: {self.detail}"
        at = f" at offset {self.offset}" if self.offset >= 0 else ""
        return f"{self.record}{at} cannot be applied to the metadata image: {self.detail}"
