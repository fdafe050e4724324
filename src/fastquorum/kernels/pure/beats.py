"""See `kernels.beats`. Source: KIP-631; the Kafka protocol guide (request header 2)."""

import struct
import threading
from typing import Final

from fastquorum.errors import UsageError
from fastquorum.kernels.batches import Buffer
from fastquorum.kernels.beats import (
    ANSWER_BYTES_MAX,
    ANSWER_BYTES_MIN,
    FIXED_BYTES,
    HEARTBEAT_KEY,
    AnsweredBeat,
    SteadyBeat,
)
from fastquorum.types import Micros, NodeId

_HEADER: Final = struct.Struct(">hhih")
"""API key, version, correlation id, length of the client's id (-1: none)."""
_FIXED: Final = struct.Struct(">iqq")
assert _FIXED.size == FIXED_BYTES


class SteadyBeats:
    """See `kernels.beats.SteadyBeats`."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._leader_epoch = -1
        self._kept: dict[NodeId, SteadyBeat] = {}
        self._answered: dict[NodeId, AnsweredBeat] = {}

    def begin(self, leader_epoch: int) -> None:
        with self._guard:
            self._leader_epoch = leader_epoch
            self._kept.clear()
            self._answered.clear()

    def keep(self, beat: SteadyBeat) -> None:
        if not ANSWER_BYTES_MIN <= len(beat.answer) <= ANSWER_BYTES_MAX:
            raise UsageError(f"{len(beat.answer)} bytes cannot be an answer to a heartbeat")
        with self._guard:
            self._kept[beat.broker_id] = beat

    def forget(self, broker_id: NodeId) -> None:
        with self._guard:
            self._kept.pop(broker_id, None)

    def forget_all(self) -> None:
        with self._guard:
            self._kept.clear()

    def answer(self, frame: Buffer, leader_epoch: int, now_us: Micros) -> bytes | None:
        if len(frame) < _HEADER.size:
            return None
        api_key, version, correlation_id, client_bytes = _HEADER.unpack_from(frame)
        at = _HEADER.size + max(client_bytes, 0)
        # Behind the client's id: no tags. What is shorter than its fixed part cannot be a heartbeat.
        if api_key != HEARTBEAT_KEY or client_bytes < -1 or len(frame) < at + 1 + FIXED_BYTES or frame[at]:
            return None
        broker_id, broker_epoch, metadata_offset = _FIXED.unpack_from(frame, at + 1)
        with self._guard:
            kept = self._kept.get(broker_id)
            if (
                kept is None
                or leader_epoch != self._leader_epoch
                or (kept.broker_epoch, kept.version) != (broker_epoch, version)
                or metadata_offset < kept.metadata_offset_min
                or kept.wishes != bytes(frame[at + 1 + FIXED_BYTES :])
            ):
                return None
            self._answered[broker_id] = AnsweredBeat(broker_id, broker_epoch, now_us, metadata_offset)
        return struct.pack(">i", correlation_id) + kept.answer[ANSWER_BYTES_MIN:]

    def take_answered(self) -> list[AnsweredBeat]:
        with self._guard:
            answered, self._answered = self._answered, {}
        return list(answered.values())
