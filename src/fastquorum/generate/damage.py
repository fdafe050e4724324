"""Damages one replica's directory, a copy of all the others until then. The files are valid otherwise."""

import os
import struct
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from fastquorum.config import QuorumConfig
from fastquorum.generate.drafts import DraftDisk, NoFlush
from fastquorum.generate.kinds import Kind
from fastquorum.generate.options import FAULTS_FROM
from fastquorum.generate.planted import Planted
from fastquorum.generate.writing import DraftBatch, append
from fastquorum.kernels import BATCH_HEADER_BYTES, BatchInfo, Kernels
from fastquorum.sim.prng import Prng
from fastquorum.storage import names
from fastquorum.storage.log.epochs import parse_epochs
from fastquorum.storage.log.log import Log
from fastquorum.storage.log.mark import LogPosition, read_mark, write_mark
from fastquorum.types import NodeId, Offset

LATER_MS: Final = 1
"""How much later the timestamps of diverging batches are than in the other replicas, in milliseconds."""
_EPOCH_AT, _CRC_AT, _CHECKED_FROM, _TIMES_AT = 12, 17, 21, 27
"""Positions in a batch. The epoch is under no checksum."""
_CRC: Final = struct.Struct(">I")
_TIMES: Final = struct.Struct(">qq")


@dataclass(slots=True)
class Victim:
    """The replica that is damaged."""

    disk: DraftDisk
    kernels: Kernels
    config: QuorumConfig
    node_id: NodeId
    prng: Prng
    tail: tuple[DraftBatch, ...]
    """The batches behind the others' end that it alone gets, if any."""
    spared: tuple[Offset, ...]
    """Offsets of records that are wrong in all replicas: they must be readable in this one, too."""

    @property
    def bases(self) -> list[Offset]:
        """The base offsets of its segments, ascending."""
        found = (names.parse_segment(name) for name in self.disk.list(names.LOG_DIRECTORY))
        return [base for base in found if base is not None]

    @property
    def checkpoint_ends(self) -> frozenset[Offset]:
        found = (names.parse_checkpoint(name) for name in self.disk.list(names.LOG_DIRECTORY))
        return frozenset(each.offset for each in found if each is not None)

    def path(self, name: str) -> Path:
        return Path(self.disk.root, names.LOG_DIRECTORY, name)

    def segment(self, base: Offset) -> bytes:
        return self.disk.read_file(names.join(names.LOG_DIRECTORY, names.segment_name(base)))

    def infos(self, base: Offset) -> list[BatchInfo]:
        return self.kernels.batch_headers(self.segment(base), verify_crc=False)

    def pick_inner(self) -> Offset:
        """Return a segment that is neither the first nor the last one."""
        bases = self.bases
        first = max(1, int(len(bases) * FAULTS_FROM))
        inner = [*zip(bases[first:-1], bases[first + 1 :], strict=True)]
        calm = [base for base, end in inner if not any(base <= each < end for each in self.spared)]
        return self.prng.pick(calm or [base for base, _ in inner])

    def planted(self, kind: Kind, info: BatchInfo, end_offset: Offset, base: Offset) -> Planted:
        return Planted(
            kind=kind,
            offset=info.base_offset,
            end_offset=end_offset,
            time_ms=info.base_timestamp_ms,
            end_ms=info.max_timestamp_ms,
            epoch=info.leader_epoch,
            node_id=self.node_id,
            segment=names.segment_name(base),
        )


def divergence(victim: Victim) -> Planted:
    """Date the batches of a segment, from its middle on, a moment later, as if another leader had written them.
    Their records stay the same, and so does the last batch that a checkpoint covers: nothing else is wrong."""
    base = victim.pick_inner()
    data, infos = bytearray(victim.segment(base)), victim.infos(base)
    covered = victim.checkpoint_ends
    chosen = [each for each in infos[len(infos) // 2 :] if each.last_offset + 1 not in covered] or infos[:1]
    for info in chosen:
        _stamp_later(victim.kernels, data, info)
    victim.path(names.segment_name(base)).write_bytes(data)
    return victim.planted(Kind.DIVERGENCE, chosen[0], chosen[-1].last_offset + 1, base)


def _stamp_later(kernels: Kernels, data: bytearray, info: BatchInfo) -> None:
    """Set base and largest timestamp, and the checksum over them."""
    at, end = info.position, info.position + info.size_bytes
    times = (info.base_timestamp_ms + LATER_MS, info.max_timestamp_ms + LATER_MS)
    _TIMES.pack_into(data, at + _TIMES_AT, *times)
    _CRC.pack_into(data, at + _CRC_AT, kernels.crc32c(data[at + _CHECKED_FROM : end]))


def uncommitted_tail(victim: Victim) -> Planted:
    """Append batches behind the end of the others: the leader had written them when all stopped."""
    log = Log.open(victim.disk, victim.kernels, victim.config, NoFlush())
    with closing(log):
        for batch in victim.tail:
            append(log, batch)
    first = victim.tail[0]
    base = max(each for each in victim.bases if each <= first.base_offset)
    info = next(each for each in victim.infos(base) if each.base_offset == first.base_offset)
    return victim.planted(Kind.UNCOMMITTED_TAIL, info, victim.tail[-1].next_offset, base)


def bit_flip(victim: Victim) -> Planted:
    """Flip one bit of one batch's records."""
    base = victim.pick_inner()
    data, infos = bytearray(victim.segment(base)), victim.infos(base)
    info = infos[len(infos) // 4 + victim.prng.randrange(max(len(infos) // 2, 1))]
    at = victim.prng.between(info.position + BATCH_HEADER_BYTES, info.position + info.size_bytes - 1)
    data[at] ^= 1 << victim.prng.randrange(8)
    victim.path(names.segment_name(base)).write_bytes(data)
    return victim.planted(Kind.BIT_FLIP, info, info.last_offset + 1, base)


def missing_segment(victim: Victim) -> Planted:
    """Remove one segment, with its index."""
    base = victim.pick_inner()
    infos = victim.infos(base)
    victim.path(names.segment_name(base)).unlink()
    victim.path(names.index_name(base)).unlink()
    return victim.planted(Kind.MISSING_SEGMENT, infos[0], infos[-1].last_offset + 1, base)


def torn_end(victim: Victim) -> Planted:
    """Cut the last batch short, as when a machine stops in a write to a segment that is not known to be synced."""
    base = victim.bases[-1]
    last = victim.infos(base)[-1]
    os.truncate(victim.path(names.segment_name(base)), last.position + last.size_bytes // 2)
    victim.path(names.index_name(base)).unlink()  # which a log has once it is closed
    epochs = parse_epochs(victim.disk.read_file(names.join(names.LOG_DIRECTORY, names.EPOCH_CHECKPOINT)))
    mark = read_mark(victim.disk, victim.kernels, names.LOG_DIRECTORY)
    assert mark is not None
    at = LogPosition(base, base, 0)
    write_mark(victim.disk, victim.kernels, names.LOG_DIRECTORY, at, epochs, mark.start_offset)
    return victim.planted(Kind.TORN_END, last, last.last_offset + 1, base)


def turn_epoch_back(victim: Victim, planted: Planted) -> None:
    """Set the planted epoch in the batch at the planted offset; a replica may have lost that batch."""
    assert planted.epoch is not None
    base = max(each for each in victim.bases if each <= planted.offset)
    for info in victim.infos(base):
        if info.base_offset == planted.offset:
            with open(victim.path(names.segment_name(base)), "r+b") as file:
                file.seek(info.position + _EPOCH_AT)
                file.write(planted.epoch.to_bytes(4, "big"))


DAMAGES: Final[Mapping[Kind, Callable[[Victim], Planted]]] = MappingProxyType(
    {
        Kind.DIVERGENCE: divergence,
        Kind.UNCOMMITTED_TAIL: uncommitted_tail,
        Kind.BIT_FLIP: bit_flip,
        Kind.MISSING_SEGMENT: missing_segment,
        Kind.TORN_END: torn_end,
    }
)
