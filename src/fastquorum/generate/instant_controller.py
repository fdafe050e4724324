"""The controllers of a cluster without a quorum: the active one decides, and its decisions are in the log at once.

They are the real controller, its records and answers (`controller/`), as `node.metadata.controller` runs it, without
the consensus. Only the caller moves time.
"""

from collections.abc import Callable, Sequence
from typing import Final

from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.decisions import record_version
from fastquorum.controller.image import EMPTY, Image
from fastquorum.controller.requests import decide, done, note_contact
from fastquorum.controller.state.controller_state import ControllerSettings, ControllerState
from fastquorum.generate.writing import LogWriter
from fastquorum.kernels import Kernels
from fastquorum.node.metadata.controller import RECORDS_PER_BATCH_MAX
from fastquorum.node.metadata.periodic import PeriodicTask, periodic_tasks
from fastquorum.raft.messages import kraft_version_record, leader_change, voters_record
from fastquorum.sim.prng import Prng
from fastquorum.types import NO_NODE, Epoch, Micros, NodeId, Offset, VoterSet
from fastquorum.wire.codec.codec import codec_of
from fastquorum.wire.message import Message
from fastquorum.wire.records.cluster import BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from fastquorum.wire.records.metadata import decode_metadata_record, encode_metadata_record

KRAFT_VERSION: Final = 1
Tamper = Callable[[Sequence[Message]], Sequence[Message]]


class InstantController:
    """The active controller of a cluster without a quorum; there is none until `elect`."""

    def __init__(
        self,
        writer: LogWriter,
        kernels: Kernels,
        voters: VoterSet,
        settings: ControllerSettings,
        chance: Prng,
        start_ms: int,
    ) -> None:
        self.writer: Final = writer
        self.voters: Final = voters
        self.settings: Final = settings
        self.now_us: Micros = 0
        """Time since the log began."""
        self.appended_us: Micros = 0
        """When the last batch was written."""
        self.leader_id: NodeId = NO_NODE
        self.epoch: Epoch = 0
        self._chance = chance
        self._start_ms = start_ms
        self._codec = codec_of(kernels)
        self._make = kernels.untracked
        self._state: ControllerState | None = None
        self._image: Image = EMPTY
        self._periodic_tasks: list[PeriodicTask] = []
        self._tamper: Tamper | None = None

    @property
    def state(self) -> ControllerState:
        assert self._state is not None, "nobody leads"
        return self._state

    @property
    def image(self) -> Image:
        return self.state.image

    @property
    def now_ms(self) -> int:
        """The wall clock, in milliseconds."""
        return self._start_ms + self.now_us // 1000

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""
        return self.writer.end_offset

    # --- who leads ----------------------------------------------------------------------------------------------------

    def elect(self, leader_id: NodeId, first_values: Sequence[bytes] = ()) -> Offset:
        """Begin another epoch; return its first offset. `first_values`: the values that the first leader appends."""
        base, image = self.end_offset, self._image if self._state is None else self._state.image
        granting = [leader_id, *(each for each in self.voters.ids if each != leader_id)][: self.voters.majority]
        records: list[Message] = [leader_change(leader_id, self.voters, granting)]
        if base == 0:
            records += [kraft_version_record(KRAFT_VERSION), voters_record(self.voters)]
        self.epoch, self.leader_id = self.epoch + 1, leader_id
        self.appended_us = self.now_us
        self.writer.append_control(records, self.epoch, self.now_ms)
        if first_values:
            self.writer.append(first_values, self.epoch, self.now_ms)
            image = image.apply(_without_transaction(first_values))
        self._state = ControllerState(
            self.settings,
            image,
            self.end_offset,
            KRAFT_VERSION,
            self.now_us,
            node_id=leader_id,
            make=self._make,
        )
        self._periodic_tasks = periodic_tasks(self.settings, self.now_us)
        return base

    def append_control(self, messages: Sequence[Message]) -> Offset:
        """Append any control batch of this epoch; return its first offset."""
        base = self.end_offset
        self.writer.append_control(messages, self.epoch, self.now_ms)
        self.appended_us = self.now_us
        self.state.next_offset = self.end_offset
        return base

    # --- what it does -------------------------------------------------------------------------------------------------

    def ask(self, message: Message) -> Message:
        """Decide a request, write its records, and return the answer. It must not be refused as a whole."""
        state = self.state
        note_contact(state, message, self.now_us)
        decision = decide(state, message, message.__class__.__wire__.versions.last, self.now_us, self._chance)
        self.append(decision.records, is_atomic=decision.is_atomic)
        done(state, message)
        return decision.answer

    def append(self, records: Sequence[Message], *, is_atomic: bool = True) -> Offset:
        """Write records, in as many batches as the controller would; return the first offset."""
        base = self.end_offset
        if records and self._tamper is not None:
            records, self._tamper = self._tamper(records), None
        piece = max(len(records), 1) if is_atomic else RECORDS_PER_BATCH_MAX
        for start in range(0, len(records), piece):
            self._append_piece(records[start : start + piece])
        return base

    def _append_piece(self, records: Sequence[Message]) -> None:
        state, level = self.state, self.state.level
        prepared = state.prepare(records)
        values = [encode_metadata_record(record, record_version(record, level), self._codec) for record in records]
        self.writer.append(values, self.epoch, self.now_ms)
        state.applied(prepared)
        self.appended_us = self.now_us

    def tamper_with_next(self, tamper: Tamper) -> None:
        """Let `tamper` change the records of the next decision before they are written."""
        self._tamper = tamper

    def no_op(self) -> Offset:
        """Append a no-op, as an idle leader does; return its offset."""
        return self.append([NoOpRecord()])

    def look(self) -> None:
        """Elect preferred leaders, and leaders for partitions without one, where it is time for that."""
        for task in self._periodic_tasks:
            while task.at_us <= self.now_us:
                self.append(task.find(self.state, self.now_us), is_atomic=False)

    def fence_expired(self) -> None:
        """Fence the brokers that were silent for too long."""
        while records := brokers.fence_expired(self.state, self.now_us):
            self.append(records, is_atomic=False)


def _without_transaction(values: Sequence[bytes]) -> list[Message]:
    records = [decode_metadata_record(value)[0] for value in values]
    return [each for each in records if not isinstance(each, BeginTransactionRecord | EndTransactionRecord)]
