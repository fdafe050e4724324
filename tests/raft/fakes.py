"""The log and the lane of a replica under test: what raft/ may see of them, and no more."""

from dataclasses import dataclass, field

from fastquorum.kernels.lane import LaneMode, LaneSession, LaneState, LeaderSession, PeerState
from fastquorum.types import Epoch, Micros, Offset, OffsetAndEpoch, ReplicaKey


def epochs_of(text: str) -> list[Epoch]:
    """ "1:10 5:3" is ten records of epoch 1, then three of epoch 5."""
    return [int(epoch) for epoch, count in (part.split(":") for part in text.split()) for _ in range(int(count))]


@dataclass
class FakeSnapshots:
    """Snapshots of so many bytes."""

    sizes: dict[OffsetAndEpoch, int] = field(default_factory=dict)

    @property
    def latest(self) -> OffsetAndEpoch | None:
        return max(self.sizes, default=None)

    @property
    def earliest(self) -> OffsetAndEpoch | None:
        return min(self.sizes, default=None)

    def size_bytes(self, snapshot: OffsetAndEpoch) -> int:
        return self.sizes.get(snapshot, -1)


class FakeLog:
    """A log of epochs only. Everything is flushed at once unless `unflushed` says otherwise."""

    def __init__(self, epochs: list[Epoch]) -> None:
        self.epochs = epochs
        """From `start_offset` on."""
        self.unflushed = 0
        self.is_full = False
        self.takes_nothing = False
        self.start_offset = 0
        self.committed_offset = 0
        self.snapshots = FakeSnapshots()

    @property
    def end_offset(self) -> Offset:
        return self.start_offset + len(self.epochs)

    @property
    def flushed_end(self) -> Offset:
        return self.end_offset - self.unflushed

    @property
    def last_epoch(self) -> Epoch:
        if self.epochs:
            return self.epochs[-1]
        return self.snapshots.latest.epoch if self.snapshots.latest is not None and self.start_offset else 0

    def end_offset_for(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        if not self.epochs and not self.start_offset:
            return -1, -1
        if epoch >= self.last_epoch:
            return self.last_epoch, self.end_offset
        below = [each for each in self.epochs if each <= epoch]
        earliest = self.snapshots.earliest
        if not below and earliest is not None and epoch == earliest.epoch:
            return earliest.epoch, earliest.offset
        return (below[-1], self.start_offset + len(below)) if below else (epoch, self.start_offset)

    def epoch_for(self, offset: Offset) -> Epoch:
        return self.epochs[offset - self.start_offset] if self.start_offset <= offset < self.end_offset else -1

    def truncate(self, end_offset: Offset) -> None:
        del self.epochs[end_offset - self.start_offset :]

    def begin_anew(self, snapshot: OffsetAndEpoch) -> None:
        self.epochs.clear()
        self.start_offset = snapshot.offset
        self.snapshots.sizes[snapshot] = self.snapshots.sizes.get(snapshot, 0)

    def __str__(self) -> str:
        counts: dict[Epoch, int] = {}
        for epoch in self.epochs:
            counts[epoch] = counts.get(epoch, 0) + 1
        return " ".join(f"{epoch}:{count}" for epoch, count in counts.items())


@dataclass
class FakeLane:
    """What the frozen lane would tell."""

    session: LaneSession | None = None
    high_watermark: Offset = -1
    leader_contact_us: Micros = -1
    fetch_sent_us: Micros = -1
    peers: dict[ReplicaKey, PeerState] = field(default_factory=dict)

    def state(self, log: FakeLog) -> LaneState | None:
        if self.session is None:
            return None
        leads = isinstance(self.session, LeaderSession)
        return LaneState(
            mode=LaneMode.LEADER if leads else LaneMode.FOLLOWER,
            epoch=self.session.epoch,
            log_end=log.end_offset,
            flushed_end=log.flushed_end,
            high_watermark=self.high_watermark,
            peers=tuple(self.peers[each] for each in sorted(self.peers)),
            leader_contact_us=self.leader_contact_us,
            fetch_sent_us=self.fetch_sent_us,
            fetch_in_flight=1 if self.fetch_sent_us >= 0 else -1,
        )

    def settle(self, session: LaneSession | None) -> None:
        """Go on or open anew, like the replica."""
        if session is not None and type(session) is type(self.session):
            assert self.session is not None
            if session._replace(high_watermark=0) == self.session._replace(high_watermark=0):
                return
        assert self.session is None, "the session changed without CloseLane"
        if session is not None:
            self.__init__(session, session.high_watermark)  # type: ignore[misc]
