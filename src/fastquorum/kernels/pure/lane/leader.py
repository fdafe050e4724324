"""The lane of a leader: appends, the Fetches that continue, the high watermark from flushed ends, read barriers.

Group commit: a batch is written when the flusher is idle or a voter's Fetch waits for it; otherwise appends gather
until the sync is reported, a voter fetches, or the batch is full. A written batch goes out to parked Fetches before it
is synced here. Source: KIP-595 "Fetch"; KIP-1166 (a follower is told that the high watermark moved).
"""

from collections.abc import Sequence
from typing import Final

from fastquorum.errors import RecordTooLarge
from fastquorum.kernels import Accumulator, Buffer
from fastquorum.kernels.lane import (
    ALWAYS_CONFIRMED_US,
    NO_CONNECTION,
    Advanced,
    Connection,
    FetchAdmission,
    LeaderSession,
    Output,
    PeerState,
    Send,
    Unparked,
)
from fastquorum.kernels.pure.lane.context import CORRELATION_FIRST, LaneContext, correlation_of, end_of, is_ahead
from fastquorum.kernels.pure.lane.fetch_requests import REQUEST_PARSERS
from fastquorum.kernels.pure.lane.fetch_responses import RESPONSE_ENCODERS, ResponseEncoder
from fastquorum.kernels.pure.lane.observers import AwaitedObservers
from fastquorum.kernels.pure.lane.peer import Peer
from fastquorum.types import ZERO_UUID, Micros, NodeId, Offset, ReplicaKey

FETCH_KEY: Final = 1
ENDPOINTS_VERSION_MIN: Final = 17
"""Kafka's leader names its endpoint from here on, though version 16 could."""
US_PER_MS: Final = 1_000
ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
"""Records read for one answer, whatever the peer would take: everybody else waits while they are read."""
PEERS_MAX: Final = 256
"""Peers remembered before observers that are gone are forgotten."""
HIGH_WATERMARK_DELAY_US: Final = 3_000
"""How long a voter may be left behind the high watermark while there is nothing else to tell it."""


class LeaderLane:
    """The lane of a leader's session. The facade keeps it from being called while frozen or failed."""

    def __init__(self, context: LaneContext, session: LeaderSession) -> None:
        log = context.log
        assert log.last_epoch == session.epoch, "rule 1: the LeaderChangeMessage is not in the log"
        assert session.epoch_start < log.end_offset, "rule 1: the epoch has no record yet"
        self.epoch = session.epoch
        self.high_watermark = session.high_watermark
        self._context = context
        self._log = log
        self._session = session
        self._epoch_start = session.epoch_start
        self._batch: Accumulator = context.kernels.Accumulator(context.batch_bytes_max)
        self._batch_timestamp_ms = -1
        self._tail = b""
        self._tail_base: Offset = -1
        self._tail_end: Offset = -1
        """The batch written last: what parked Fetches are answered with, without reading it back."""
        self._peers: dict[ReplicaKey, Peer] = {}
        self._served: dict[Connection, Peer] = {}
        self._parked = 0
        self._parked_voters = 0
        self._observers = AwaitedObservers()
        self._own_index = self._voter_index(context.identity.key)
        self._ends = [-1] * len(session.voters)
        """Flushed end of each voter, in the order of the session."""
        self._confirmed_us: list[Micros] = [-1] * len(session.voters)
        """When each voter surely followed still, in the same order; -1: unknown."""
        self._encoders: dict[int, ResponseEncoder] = {}
        context.barriers.open(len(session.voters), self._own_index)
        context.flush_rest()

    # --- appends ----------------------------------------------------------------------------------------------------

    def append(self, values: Sequence[Buffer], timestamp_ms: int) -> Offset:
        """The first value's offset; `push` is to follow. See `Lane.append`."""
        batch = self._batch
        try:
            if not batch.is_open:
                self._open_batch(timestamp_ms)
            offset = batch.append_many(values)
            if offset < 0:
                self._write_open_batch()
                self._open_batch(timestamp_ms)
                offset = batch.append_many(values)
        finally:
            if not batch.record_count:
                batch.discard()
        return offset

    def push(self, now_us: Micros, out: list[Output]) -> None:
        """Write what gathered if nobody gains by its waiting, and answer whoever waits for records."""
        if self._parked_voters or not self._log.is_flushing:
            self.seal()
        if self._parked:
            self._answer_parked(now_us, out)

    def append_encoded(
        self, batch: bytearray, record_count: int, timestamp_ms: int, now_us: Micros, out: list[Output]
    ) -> Offset:
        """The first record's offset; see `Lane.append_encoded`."""
        limit = self._context.batch_bytes_max
        if len(batch) > limit:
            raise RecordTooLarge(size_bytes=len(batch), limit_bytes=limit)
        self.seal()
        offset = self._log.end_offset
        self._context.kernels.stamp_batch(batch, offset, self.epoch)
        self._write(bytes(batch), offset, offset + record_count, timestamp_ms)
        if self._parked:
            self._answer_parked(now_us, out)
        return offset

    @property
    def gathered_bytes(self) -> int:
        return self._batch.size_bytes if self._batch.record_count else 0

    def seal(self) -> None:
        """Write what was accepted."""
        if self._batch.record_count:
            self._write_open_batch()

    def _open_batch(self, timestamp_ms: int) -> None:
        self._batch.open(self._log.end_offset, self.epoch, timestamp_ms)
        self._batch_timestamp_ms = timestamp_ms

    def _write_open_batch(self) -> None:
        batch = self._batch
        base_offset, end_offset = batch.base_offset, batch.next_offset
        self._write(batch.seal(), base_offset, end_offset, self._batch_timestamp_ms)

    def _write(self, data: bytes, base_offset: Offset, end_offset: Offset, timestamp_ms: int) -> None:
        self._context.write(data, base_offset, end_offset, self.epoch, timestamp_ms)
        self._tail, self._tail_base, self._tail_end = data, base_offset, end_offset

    # --- fetches ----------------------------------------------------------------------------------------------------

    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros, out: list[Output]) -> bool:
        """False, and nothing changed: not the steady state."""
        peer = self._served.get(connection)
        if peer is None or peer.is_parked or frame[:4] != peer.head:
            return correlation_of(frame) >= CORRELATION_FIRST  # a late answer to a Fetch of ours, from when we followed
        fields = peer.parse(frame)
        if fields is None:
            return False
        (
            correlation_id, cluster_id, replica_id, max_wait_ms, bytes_max, topic_id,
            epoch, offset, last_fetched_epoch, directory_id, request_high_watermark,
        ) = fields  # fmt: skip
        context = self._context
        if not is_ahead(correlation_id, peer.newest_id):
            return True  # a copy of an earlier Fetch: it answers nothing that was sent since (rule 7)
        if (
            epoch != self.epoch
            or offset != peer.sent_end
            or last_fetched_epoch != peer.sent_epoch
            or offset < self._log.start_offset
            or replica_id != peer.key.id
            or max_wait_ms < 0
            or (directory_id is not None and directory_id != peer.key.directory_id)
            or (cluster_id is not None and cluster_id != context.cluster_id)
            or (topic_id is not None and topic_id != context.topic_id)
        ):
            return False
        peer.newest_id = correlation_id
        peer.fetched(offset, self._log.end_offset, now_us)
        self._park(peer, correlation_id, request_high_watermark, max_wait_ms * US_PER_MS, bytes_max, now_us)
        self._observers.fetched(peer, out)
        self._count(peer)
        self._settle(peer.voter_index >= 0, now_us, out)
        return True

    def admit(self, fetch: FetchAdmission, now_us: Micros, out: list[Output]) -> None:
        """Take over this peer and its Fetch, parked; `settle` answers it.

        An earlier one, if parked, is forgotten; on another connection somebody may still wait for it.
        """
        assert fetch.api_version in REQUEST_PARSERS, f"Fetch {fetch.api_version} has no last fetched epoch"
        peer = self._peers.get(fetch.peer)
        if peer is None:
            if len(self._peers) >= PEERS_MAX:
                self._forget_gone()
            peer = self._peers[fetch.peer] = Peer(fetch.peer)
        self.detach(fetch.connection, out, keep=peer)
        if peer.connection != fetch.connection:
            if peer.is_parked:
                out.append(_unparked(peer))
            self.detach(peer.connection, out)
            peer.connection = fetch.connection
            peer.answered, peer.answered_us = 0, -1  # nothing was sent on this connection yet
            peer.newest_id = fetch.correlation_id
            self._served[fetch.connection] = peer
        else:
            is_newest = is_ahead(fetch.correlation_id, peer.newest_id)
            if peer.is_parked or not is_newest:
                # Sent before the parked one was answered, or a copy of an earlier one: confirms no barrier (rule 7).
                peer.answered, peer.answered_us = 0, -1
            if is_newest:
                peer.newest_id = fetch.correlation_id
        self._unpark(peer)
        peer.voter_index = self._voter_index(fetch.peer) if fetch.is_voter else -1
        peer.head = FETCH_KEY.to_bytes(2, "big") + fetch.api_version.to_bytes(2, "big")
        peer.parse = REQUEST_PARSERS[fetch.api_version]
        peer.encode = self._encoder(fetch.api_version)
        peer.sent_end = fetch.fetch_offset
        peer.sent_epoch = self._log.last_epoch  # counts only after an empty answer: then the peer is at the log's end
        peer.fetched(fetch.fetch_offset, self._log.end_offset, now_us)
        self._park(peer, fetch.correlation_id, fetch.request_high_watermark, fetch.max_wait_us, fetch.bytes_max, now_us)
        self._observers.fetched(peer, out)
        self._count(peer)

    def _forget_gone(self) -> None:
        """Whoever comes may call itself anything, a static voter by ever new directories: those without a connection
        are let go of, but for the last that was heard of each voter."""
        last: dict[int, Peer] = {}
        for peer in self._peers.values():
            before = last.get(peer.voter_index)
            if peer.voter_index >= 0 and (before is None or peer.last_contact_us >= before.last_contact_us):
                last[peer.voter_index] = peer
        kept = {peer.key for peer in last.values()}
        for key in [key for key, peer in self._peers.items() if peer.connection < 0 and key not in kept]:
            del self._peers[key]

    def detach(self, connection: Connection, out: list[Output], keep: Peer | None = None) -> None:
        """The connection is gone, or `keep`'s from now on: its peer is served no longer."""
        peer = self._served.get(connection)
        if peer is None or peer is keep:
            return
        del self._served[connection]
        peer.connection = NO_CONNECTION
        self._unpark(peer)
        self._observers.leave(peer, out)

    def await_observers(self, ids: Sequence[NodeId], offset: Offset) -> bool:
        return self._observers.begin(self._served.values(), ids, offset)

    def settle(self, now_us: Micros, out: list[Output]) -> None:
        """Go on after anything may have moved: a sync, a pause, an admission."""
        self._settle(True, now_us, out)

    def _settle(self, may_write: bool, now_us: Micros, out: list[Output]) -> None:
        """Write what gathered, move the high watermark, answer whom that concerns and whoever does not want to wait."""
        if may_write and self._batch.record_count:
            self._write_open_batch()
        self._advance(out)
        self._answer_parked(now_us, out)
        if self._parked:
            self._hasten(now_us)
            self.on_tick(now_us, out)
        self._complete_barriers(out)

    def _count(self, peer: Peer) -> None:
        if peer.voter_index >= 0:
            self._ends[peer.voter_index] = peer.end_offset
            self._context.barriers.confirm(peer.voter_index, peer.answered)
            self._confirmed_us[peer.voter_index] = max(self._confirmed_us[peer.voter_index], peer.answered_us)

    def _advance(self, out: list[Output]) -> None:
        """Recompute the high watermark, from flushed ends alone: the leader's own too, and only if it is a voter."""
        if self._own_index >= 0:
            self._ends[self._own_index] = self._log.flushed_end
        reached = self._context.kernels.high_watermark(self._ends, self._epoch_start)
        if reached > self.high_watermark:
            self.high_watermark = reached
            out.append(Advanced(reached))

    # --- parking ----------------------------------------------------------------------------------------------------

    def _park(
        self, peer: Peer, correlation_id: int, high_watermark: Offset, wait_us: Micros, bytes_max: int, now_us: Micros
    ) -> None:
        peer.is_parked = True
        peer.correlation_id = correlation_id
        peer.request_high_watermark = high_watermark
        peer.deadline_us = now_us + min(wait_us, self._session.timeouts.fetch_wait_us_max)
        peer.bytes_max = max(min(bytes_max, ANSWER_BYTES_MAX), 1)
        self._parked += 1
        self._parked_voters += peer.voter_index >= 0

    def _unpark(self, peer: Peer) -> None:
        if peer.is_parked:
            peer.is_parked = False
            self._parked -= 1
            self._parked_voters -= peer.voter_index >= 0

    def _answer_parked(self, now_us: Micros, out: list[Output]) -> None:
        """Answer every parked Fetch that has records to get; for a pending barrier every voter's, empty or not."""
        end_offset = self._log.end_offset
        barriers = self._context.barriers
        provoking = barriers.begun if barriers.is_pending else 0
        for peer in self._served.values():
            if peer.is_parked and (peer.sent_end < end_offset or (peer.answered < provoking and peer.voter_index >= 0)):
                self._answer(peer, now_us, out)

    def _hasten(self, now_us: Micros) -> None:
        """Tell peers that do not know the high watermark yet: observers at once, voters soon.

        An observer (a broker) applies what is committed: whoever reads there what was just acknowledged must find it.
        A voter has no use for it before it leads, and is told with the next records or by a late empty answer: one at
        once would be a second message for every commit, and leave no Fetch parked for the next append.
        """
        soon = now_us + HIGH_WATERMARK_DELAY_US
        for peer in self._served.values():
            if peer.is_parked and self.high_watermark > peer.request_high_watermark:
                peer.deadline_us = min(peer.deadline_us, soon if peer.voter_index >= 0 else now_us)

    def _answer(self, peer: Peer, now_us: Micros, out: list[Output]) -> None:
        """Claim the peer's parked Fetch and answer it from the log as it is now."""
        log = self._log
        offset = peer.sent_end
        if offset >= log.end_offset:
            records = b""
        elif offset == self._tail_base:
            records = self._tail
            peer.sent_end, peer.sent_epoch = self._tail_end, self.epoch
        else:
            records = log.read(offset, peer.bytes_max)
            peer.sent_end, peer.sent_epoch = end_of(records)
        self._unpark(peer)
        if peer.correlation_id == peer.newest_id:  # the response to a copy provokes no Fetch (rule 7)
            peer.answered, peer.answered_us = self._context.barriers.begun, now_us
        out.append(
            Send(peer.connection, peer.encode(peer.correlation_id, self.high_watermark, log.start_offset, records))
        )

    def on_tick(self, now_us: Micros, out: list[Output]) -> None:
        """Answer whose wait is over."""
        for peer in self._served.values():
            if peer.is_parked and peer.deadline_us <= now_us:
                self._answer(peer, now_us, out)

    @property
    def deadline_us(self) -> Micros:
        if not self._parked:
            return -1
        # Asked without the lock: a caller's append may answer the last one between the two lines.
        return min((peer.deadline_us for peer in self._served.values() if peer.is_parked), default=-1)

    def unpark_all(self, out: list[Output]) -> None:
        """The session ends: name every Fetch that somebody else must answer."""
        for peer in self._served.values():
            if peer.is_parked:
                self._unpark(peer)
                out.append(_unparked(peer))

    # --- barriers and state -----------------------------------------------------------------------------------------

    def begin_barrier(self, now_us: Micros, out: list[Output]) -> int:
        barrier = self._context.barriers.begin()
        if self._parked_voters:
            self._answer_parked(now_us, out)
        self._complete_barriers(out)
        return barrier

    def _complete_barriers(self, out: list[Output]) -> None:
        barriers = self._context.barriers
        if barriers.is_pending and self.high_watermark > self._epoch_start:
            barriers.complete(self.high_watermark, out)

    @property
    def confirmed_us(self) -> Micros:
        """See `Lane.confirmed_us`."""
        others = [each for index, each in enumerate(self._confirmed_us) if index != self._own_index]
        needed = len(self._confirmed_us) // 2 + (self._own_index < 0)
        return sorted(others, reverse=True)[needed - 1] if needed else ALWAYS_CONFIRMED_US

    def peer_states(self) -> tuple[PeerState, ...]:
        return tuple(self._peers[key].state() for key in sorted(self._peers))

    def _voter_index(self, key: ReplicaKey) -> int:
        """The key's place among the voters. One whose directory is not known (kraft.version 0) is known by its id."""
        for index, voter in enumerate(self._session.voters):
            if voter.id == key.id and voter.directory_id in (ZERO_UUID, key.directory_id):
                return index
        return -1

    def _encoder(self, api_version: int) -> ResponseEncoder:
        encoder = self._encoders.get(api_version)
        if encoder is None:
            endpoint = self._session.endpoint
            host, port = None, -1
            if endpoint is not None and api_version >= ENDPOINTS_VERSION_MIN:
                host, port = endpoint.host.encode(), endpoint.port
            context = self._context
            encoder = self._encoders[api_version] = RESPONSE_ENCODERS[api_version](
                context.topic_id, context.identity.key.id, self.epoch, host, port
            )
        return encoder


def _unparked(peer: Peer) -> Unparked:
    return Unparked(peer.connection, peer.correlation_id, int.from_bytes(peer.head[2:], "big"))
