"""Follower: copies the leader's log by Fetch, and stands for election when the leader falls silent.

The lane sends the Fetches and takes the steady state in; what it hands up is judged here. An observer follows the same
way but never stands. Sources: KIP-595 (log reconciliation); Kafka `FollowerState`.

A process that is gone need not be waited for: its connections end, and nobody listens where it did. Kafka's followers
wait for the fetch timeout all the same. Nothing but time depends on who is taken for gone: the others' pre-votes
protect a leader that they reach (KIP-996), and votes are as ever.
"""

from typing import Final

from fastquorum.kernels.lane import FollowerSession
from fastquorum.raft import claims, doubles, messages
from fastquorum.raft.committed import keeps_committed
from fastquorum.raft.copying import SnapshotCopy, SnapshotPart
from fastquorum.raft.core import Core, Role
from fastquorum.raft.discovery import discover_leader
from fastquorum.raft.effects import (
    AppendSpan,
    CommitTo,
    ConnectLeader,
    DropSnapshotPart,
    InstallSnapshot,
    TruncateLog,
    WriteSnapshotPart,
)
from fastquorum.raft.events import RecordSpan, SnapshotInstalled
from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.types import Endpoint, Micros, NodeId, OffsetAndEpoch
from fastquorum.wire.messages.fetch import FetchResponse

_RECONNECT_US_MAX = 500_000
REFUSALS_OF_THE_GONE: Final = 2
"""Attempts in a row. A single one may fail for another reason: a reset on its way, a name that is not resolved."""
STAND_PART: Final = 4
"""The part of the election timeout within which the followers of a leader that is gone stand, each at its own time."""

FetchedPartition = FetchResponse.FetchableTopicResponse.PartitionData


class Follower(Role):
    """A follower of one leader in one epoch, at one address."""

    name = RoleName.FOLLOWER

    def __init__(self, core: Core, leader_id: NodeId, endpoint: Endpoint) -> None:
        self.leader_id = leader_id
        self.endpoint = endpoint
        self.has_fetched = False
        """The leader has answered, and is proven: from then on pre-votes are refused (KIP-996), until it is gone."""
        self._fetch_deadline_us = core.now_us + core.config.fetch_timeout_us
        self._has_leader_resigned = False
        self._contact_us: Micros = -1
        self._is_connected = False
        self._is_reachable = True
        """False: the leader's connection is down or answers nothing, so others are asked who leads now."""
        self._reconnects = 0
        self._refusals = 0
        """Attempts to connect that failed at once, since the connection was up or the leader was heard."""
        self._gone_at_us: Micros = -1
        """When to stand because the leader's process is gone; -1: it is not known to be."""
        self._connect_at_us: Micros = core.now_us
        """When to order the connection (again); -1: it was ordered."""
        self._fetch_at_us: Micros = -1
        """When to fetch again after a useless answer; -1: the lane fetches by itself."""
        self._check_at_us: Micros = -1
        if core.copy is not None and core.copy.leader_id != leader_id:
            core.copy = None
        self._places_taken_us: list[Micros] = []
        """When the leader said that another connection had taken the place of this replica's, of late."""
        self._tell_at_us: Micros = core.now_us + core.config.fetch_timeout_us if core.tells_leaders else -1
        """When to tell the leader what this static voter is (again); -1: it knows, or needs not."""

    # --- time ---------------------------------------------------------------------------------------------------------

    def absorb(self, core: Core) -> None:
        if core.lane is not None and core.lane.leader_contact_us > self._contact_us:
            self._note_contact(core, core.lane.leader_contact_us)

    def _note_contact(self, core: Core, at_us: Micros) -> None:
        self._is_reachable = True
        self._reconnects = 0
        self._is_there()
        self._contact_us = at_us
        if not core.is_leader_unproven:
            core.own_word_epoch = -1  # whatever the log says of it from now on
            self.has_fetched = True
            self._has_leader_resigned = False
            self._fetch_deadline_us = at_us + core.config.fetch_timeout_us
            claims.was_led(core, at_us)

    def is_in_contact(self, core: Core) -> bool:
        """Does the leader go on, proven or not?"""
        has_answered = self._contact_us >= 0 and core.now_us < self._contact_us + core.config.fetch_timeout_us
        return has_answered and not self._has_leader_resigned

    @property
    def silent_at_us(self) -> Micros:
        """When the leader has been silent for the fetch timeout, or is to be replaced as it has resigned."""
        return self._fetch_deadline_us

    def stand_by(self, at_us: Micros) -> None:
        """Stand at this time at the latest, unless the leader is heard before."""
        self._fetch_deadline_us = min(self._fetch_deadline_us, at_us)

    def leader_resigned(self, core: Core, backoff_us: Micros) -> None:
        """EndQuorumEpoch: stand after this time, unless somebody else does before. That it is said again puts nothing
        off."""
        self._has_leader_resigned = True
        self.stand_by(core.now_us + backoff_us)

    def grants_pre_vote(self, core: Core, is_up_to_date: bool) -> bool:
        return (not self.has_fetched or self._gone_at_us >= 0) and is_up_to_date

    def _cause_to_stand(self, core: Core) -> Cause | None:
        if core.copy is not None and core.copy.is_installing:
            return None  # what comes of it is the next event, and for this role
        if self._has_leader_resigned:
            # It has told who should stand first; that its process ends then is no news.
            return Cause.LEADER_RESIGNED if core.now_us >= self._fetch_deadline_us else None
        if core.is_silence(self._fetch_deadline_us):
            return Cause.FETCH_TIMEOUT
        return Cause.LEADER_GONE if self._gone_at_us >= 0 and core.is_silence(self._gone_at_us) else None

    def poll(self, core: Core) -> Cause | None:
        if core.is_voter and not core.is_shutting_down:
            cause = self._cause_to_stand(core)
            if cause is not None:
                if core.may_stand:
                    return cause
                self._put_off(core)
            core.wake_at(self._fetch_deadline_us)
            if self._gone_at_us >= 0 and not self._has_leader_resigned:
                core.wake_at(self._gone_at_us)
        self._fetch_snapshot(core)
        self._check_fetch(core)
        self._tell_leader(core)
        if 0 <= self._connect_at_us <= core.now_us or 0 <= self._fetch_at_us <= core.now_us:
            self._connect(core)
        for due_us in (self._connect_at_us, self._fetch_at_us, self._check_at_us):
            if due_us >= 0:
                core.wake_at(due_us)
        if not self._is_reachable or core.is_leader_unproven:
            discover_leader(core)
        return None

    def _put_off(self, core: Core) -> None:
        """Postpone what is due by an election timeout: this replica may not stand now."""
        later_us = core.random_election_deadline()
        if core.now_us >= self._fetch_deadline_us:
            self._fetch_deadline_us = later_us
        if 0 <= self._gone_at_us <= core.now_us:
            self._gone_at_us = later_us

    # --- what a static voter tells ------------------------------------------------------------------------------------

    def _tell_leader(self, core: Core) -> None:
        """Every leader anew, as it keeps nothing of it beyond its lead. A lead that lasts no longer than the fetch
        timeout is not worth it; nor is one that was never heard (KIP-853; Kafka
        `KafkaRaftClient.pollFollowerAsVoter`)."""
        if self._tell_at_us < 0 or core.kraft_versions.last or not core.is_voter or core.is_shutting_down:
            return
        if core.now_us >= self._tell_at_us:
            ready_at = core.requests.ready_at(self.leader_id, core.now_us)
            if ready_at > core.now_us:
                core.wake_at(ready_at)
                return
            if self.has_fetched and core.listeners:
                core.request(self.leader_id, self.endpoint, messages.update_raft_voter_request(core))
            self._tell_at_us = core.now_us + core.config.fetch_timeout_us
        core.wake_at(self._tell_at_us)

    def settle_voter_update(self) -> None:
        """The leader knows what this voter is, or has no use for it."""
        self._tell_at_us = -1

    # --- the connection that the lane fetches on ----------------------------------------------------------------------

    def _connect(self, core: Core) -> None:
        """Order the connection and have the lane send a Fetch of its own accord: the one before, if any, is given
        up."""
        core.close_lane()
        core.is_link_spent = False
        core.attempt += 1
        self._connect_at_us = self._fetch_at_us = -1
        self._is_connected = False
        self._check_at_us = core.now_us + core.config.request_timeout_us
        core.emit(ConnectLeader(self.leader_id, self.endpoint))

    def _check_fetch(self, core: Core) -> None:
        """A Fetch without answer for too long is given up; so is a connection that does not come up within the request
        timeout."""
        if not 0 <= self._check_at_us <= core.now_us:
            return
        timeout_us = core.config.fetch_answer_us_max
        sent_us = core.lane.fetch_sent_us if core.lane is not None else -1
        if sent_us >= 0 and core.now_us < sent_us + timeout_us:
            self._check_at_us = sent_us + timeout_us
        elif sent_us < 0 and self._is_connected:
            # Nothing to wait for: what came last is being flushed.
            self._check_at_us = core.now_us + timeout_us
        else:
            self._check_at_us = -1
            self._is_reachable = False
            self._reconnect_later(core)

    def _reconnect_later(self, core: Core) -> None:
        backoff_us = min(core.config.retry_backoff_us << min(self._reconnects, 8), _RECONNECT_US_MAX)
        self._reconnects += 1
        self._connect_at_us = core.now_us + backoff_us

    def on_connection(self, core: Core, is_connected: bool) -> None:
        was_connected, self._is_connected = self._is_connected, is_connected
        if is_connected:
            self._is_there()
            # The lane's Fetch is on its way: another one of ours, to find the leader, could only take its place.
            self._is_reachable = True
            self._check_at_us = core.now_us + core.config.request_timeout_us
        elif self._connect_at_us < 0:
            self._is_reachable = False
            if not was_connected and core.now_us < self._check_at_us:
                self._refused(core)
            self._reconnect_later(core)

    def _refused(self, core: Core) -> None:
        """An attempt to connect failed before it timed out: a process that was heard there, and is not any more, is
        gone. Whoever never heard it may have a wrong address, and would ask for pre-votes all the time."""
        self._refusals += 1
        if self._refusals >= REFUSALS_OF_THE_GONE and self.has_fetched and self._gone_at_us < 0:
            stand_us_max = max(core.config.election_timeout_us // STAND_PART, 1)
            self._gone_at_us = core.now_us + core.random.randrange(stand_us_max)

    def _is_there(self) -> None:
        """The leader's process is not gone."""
        self._refusals = 0
        self._gone_at_us = -1

    def is_fetching(self, core: Core) -> bool:
        """False while the next Fetch is held back, or a snapshot is fetched: no lane is open then."""
        return self._fetch_at_us < 0 and core.copy is None

    def fetch_later(self, core: Core) -> None:
        """The answer was of no use: ask again, but not at once, lest two replicas keep each other busy."""
        core.close_lane()
        # What a full disk cannot take is not asked for again and again; the leader still has to be heard in time.
        backoff_us = core.config.fetch_timeout_us // 4 if core.is_disk_full else core.config.retry_backoff_us
        self._fetch_at_us = core.now_us + backoff_us

    def _fetch_now(self, core: Core) -> None:
        """Go on where the log ends now. The lane may have asked anew while the answer was on its way to be decided
        about, if something else was decided before: then that Fetch is given up with its connection."""
        core.close_lane()
        if core.is_link_spent:
            self._connect(core)
        else:
            core.attempt += 1

    # --- what the leader says -----------------------------------------------------------------------------------------

    def on_fetched(self, core: Core, fetched: FetchedPartition, span: RecordSpan | None) -> None:
        """An answer of this epoch's leader, without error, that was not the steady state."""
        self._note_contact(core, core.now_us)
        if fetched.diverging_epoch.epoch >= 0:
            self._truncate(core, fetched.diverging_epoch.epoch, fetched.diverging_epoch.end_offset)
            return
        if fetched.snapshot_id.epoch >= 0 and fetched.snapshot_id.end_offset >= 0:
            self._begin_snapshot(core, OffsetAndEpoch(fetched.snapshot_id.end_offset, fetched.snapshot_id.epoch))
            return
        end = core.log_end
        if span is not None:
            core.close_lane()
            assert span.first_offset == end, f"records at {span.first_offset} do not continue the log at {end}"
            core.emit(AppendSpan(span))
            for offset, kraft_version in span.kraft_versions:
                core.kraft_versions.append(offset, kraft_version)
            for offset, voters in span.voter_sets:
                core.voter_sets.append(offset, voters)
            end = span.next_offset
        if core.learn_high_watermark(min(end, fetched.high_watermark)):
            core.emit(CommitTo(core.high_watermark))
        if span is None:
            # Nothing that could be used: corrupt records, most likely, or there is no room for them.
            self.fetch_later(core)
        else:
            self._fetch_now(core)

    def _truncate(self, core: Core, epoch: int, end_offset: int) -> None:
        """The logs part ways at or before end_offset of `epoch` (KIP-595). Several rounds may follow."""
        keep = min(end_offset, core.log_end)
        if epoch > 0:
            own_epoch, own_end = core.log.end_offset_for(epoch)
            keep = min(own_end, end_offset) if own_epoch == epoch else max(own_end, 0)
        wish = "to agree with it the log would have to be cut at offset"
        if not keeps_committed(core, self.leader_id, wish, min(keep, end_offset)) or keep >= core.log_end:
            self.fetch_later(core)
            return
        core.close_lane()
        core.emit(TruncateLog(keep))
        core.voter_sets.truncate(keep)
        core.kraft_versions.truncate(keep)
        self._fetch_now(core)

    def on_place_taken(self, core: Core) -> None:
        """The leader has given up a Fetch of this replica's, as another connection has taken its place."""
        late_us = core.now_us - doubles.TURNS_US
        self._places_taken_us = [at_us for at_us in self._places_taken_us if at_us > late_us] + [core.now_us]
        if len(self._places_taken_us) > doubles.TURNS_MAX:
            doubles.notice_taken_place(core, self.leader_id)

    # --- a snapshot in place of the log -------------------------------------------------------------------------------

    def _begin_snapshot(self, core: Core, snapshot: OffsetAndEpoch) -> None:
        """The leader has no log from here on. Until the snapshot is installed the lane is closed (KIP-630)."""
        keeps = keeps_committed(core, self.leader_id, "it wants the log to begin anew at offset", snapshot.offset)
        if not keeps or snapshot.epoch > core.epoch:
            self.fetch_later(core)  # of a higher epoch: the log would go on in one that its leader has not seen
            return
        core.close_lane()
        core.copy = SnapshotCopy(self.leader_id, snapshot)

    def _fetch_snapshot(self, core: Core) -> None:
        """Ask for the next piece, as soon as the leader may be asked."""
        copy = core.copy
        if copy is None or copy.is_installing:
            return
        ready_at = core.requests.ready_at(self.leader_id, core.now_us)
        if ready_at <= core.now_us:
            message = messages.snapshot_fetch(core, copy.snapshot, copy.position)
            core.request(self.leader_id, self.endpoint, message)
            ready_at = core.requests.ready_at(self.leader_id, core.now_us)
        core.wake_at(ready_at)

    def on_snapshot_part(self, core: Core, part: SnapshotPart | None) -> None:
        """A piece, or None: the leader has no such snapshot, or says something else that is of no use here."""
        copy = core.copy
        if copy is None or copy.is_installing:
            return
        if part is not None:
            self._note_contact(core, core.now_us)
        if part is None or not copy.is_next(part):
            self._drop_snapshot(core)
            return
        core.emit(WriteSnapshotPart(copy.snapshot, copy.position, part.unaligned_records))
        copy.position += len(part.unaligned_records)
        if copy.position == part.size:
            copy.is_installing = True
            core.emit(InstallSnapshot(copy.snapshot))

    def _drop_snapshot(self, core: Core) -> None:
        """The next Fetch tells what to do instead."""
        core.copy = None
        core.emit(DropSnapshotPart())
        self.fetch_later(core)

    def on_installed(self, core: Core, installed: SnapshotInstalled) -> None:
        """The log begins at the snapshot's end now; what it covers is committed."""
        core.copy = None
        if not installed.is_good:
            self.fetch_later(core)
            return
        last = installed.snapshot.offset - 1
        if installed.voters is not None:
            core.voter_sets.begin_anew(last, installed.voters)
        else:
            core.voter_sets.truncate(0)
        core.kraft_versions.begin_anew(last, installed.kraft_version)
        if core.learn_high_watermark(installed.snapshot.offset):
            core.emit(CommitTo(core.high_watermark))
        self._fetch_now(core)

    def session(self, core: Core) -> FollowerSession:
        return FollowerSession(
            epoch=core.epoch,
            leader_id=self.leader_id,
            high_watermark=core.high_watermark,
            attempt=core.attempt,
            fetch_bytes_max=core.config.fetch_bytes_max,
            fetch_wait_us_max=core.config.fetch_wait_us_max,
        )
