"""The controller of a metadata quorum, on the replica that leads: requests in, records through the log, answers out.

A request is decided on all that was appended before it, committed or not; its records are one batch, or, of what may be
cut off, several; its answer waits until they are committed, and what was decided on. When the lead ends, what was not
committed is thrown away with the state, and whoever waits asks the next leader. Sans-IO; belongs to the replica's
thread. Nobody else appends here.
Source: KIP-631; Kafka `QuorumController`.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.config import QuorumConfig
from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.decisions import record_version
from fastquorum.controller.disabled import answered_anywhere
from fastquorum.controller.refusals import Refused, brief
from fastquorum.controller.requests import LEASES, decide, done, note_contact
from fastquorum.controller.state.controller_state import ControllerSettings, ControllerState
from fastquorum.controller.state.placement import PlacementRandom
from fastquorum.errors import FastQuorumError, ImageFailed, NotLeader, Overloaded, RecordTooLarge, WireError
from fastquorum.kernels import BATCH_HEADER_BYTES, RECORD_OVERHEAD_MAX, Kernels
from fastquorum.lease import LeasePromise, check_session
from fastquorum.node.metadata.control_channels import ControlChannels
from fastquorum.node.metadata.due_answers import DueAnswers
from fastquorum.node.metadata.folding import Step
from fastquorum.node.metadata.forwarding import Forwarding
from fastquorum.node.metadata.gc_pause import spare_images
from fastquorum.node.metadata.heartbeats import steady_beat
from fastquorum.node.metadata.periodic import PeriodicTask, periodic_tasks
from fastquorum.node.metadata.registration import Registration
from fastquorum.node.metadata.replay import Replay
from fastquorum.node.metadata.requests import ControllerRequest, controller_apis, read
from fastquorum.node.metadata.snapshots import SnapshotKeeper
from fastquorum.node.metadata.tally import ControllerTally
from fastquorum.node.network.inbox import OnResponse
from fastquorum.node.network.requests import Request
from fastquorum.node.records.no_ops import Idleness
from fastquorum.node.view import ReplicaView
from fastquorum.types import NO_NODE, UNKNOWN_OFFSET, Epoch, Micros, Offset
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.codec.codec import codec_of
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest
from fastquorum.wire.records.cluster import AbortTransactionRecord, NoOpRecord
from fastquorum.wire.records.metadata import encode_metadata_record

SESSION_LOOKS: Final = 8
"""Times in a session timeout that the silent are looked for at least; and when the next session is to end."""
AGAIN_US: Final = 1_000_000
"""After which elections are looked for again, if not all that was to change could be appended."""
RECORDS_PER_BATCH_MAX: Final = 10_000
"""Most records of a non-atomic change in one batch (Kafka's value)."""
FEW_RECORDS: Final = 32
"""They are written with what else the turn decides; more are at once, while the next request is decided."""


class _Ticket(NamedTuple):
    """One batch of the controller's."""

    role: "MetadataController"
    base_offset: Offset

    def committed(self, base_offset: Offset) -> None:
        if base_offset != self.base_offset:
            self.role.misplaced(base_offset, self.base_offset)

    def failed(self, error: FastQuorumError) -> None:
        self.role.lose()


class MetadataController:
    """The controller of a metadata quorum, active while this replica leads."""

    def __init__(
        self,
        settings: ControllerSettings,
        replica: ReplicaView,
        replay: Replay,
        keeper: SnapshotKeeper,
        registration: Registration,
        forwarding: Forwarding,
        config: QuorumConfig,
        chance: PlacementRandom,
        kernels: Kernels,
    ) -> None:
        """`config` gives the largest batch, and when a no-op is appended because nothing else was. `chance` decides
        where replicas go, and draws topic ids; `kernels` write the records, and make what the image keeps."""
        self._settings = settings
        self.apis: Final = controller_apis(settings)
        """What it can be asked."""
        self._replica = replica
        self._shell = shell = replica.shell
        self._idleness = Idleness(shell, config.idle_us_max)
        self._batch_bytes_max = config.batch_bytes_max
        self._chance = chance
        self._kernels = kernels
        self._codec = codec_of(kernels)
        self._make = kernels.untracked
        self._beats = kernels.SteadyBeats()
        self._promise: LeasePromise = check_session(settings.session_timeout_us)
        shell.serve_beats(self._beats, self._promise.confirmed_us)
        self.replay = replay
        self.keeper = keeper
        self._registration = registration
        self._forwarding = forwarding
        self._channels = ControlChannels(forwarding, config.request_timeout_us, is_wanted=settings.older_brokers)
        self._state: ControllerState | None = None
        self._epoch: Epoch = -1
        self._due = DueAnswers(shell)
        self._fault: ImageFailed | None = None
        self._periodic_tasks: list[PeriodicTask] = []
        self.tally: Final = ControllerTally()
        self._led_epoch: Epoch = -1
        """The latest of which a leader was known."""
        self._is_push_due = False
        """Records wait in memory for the turn's end."""

    @property
    def is_active(self) -> bool:
        """This is the controller, and has read all that was before it."""
        return self._state is not None

    @property
    def state(self) -> ControllerState | None:
        """What it decides on, while it is active."""
        return self._state

    @property
    def settings(self) -> ControllerSettings:
        """What it was started with."""
        return self._settings

    @property
    def is_registered(self) -> bool:
        """This node's controller, of this life, is in the committed image."""
        return self._registration.is_registered

    @property
    def finalized_features(self) -> dict[str, int]:
        """The committed level of each, but for the quorum's own; of the leader's and of every follower's image."""
        return self.replay.image.features.by_name()

    # --- the replica's turns ------------------------------------------------------------------------------------------

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is next due; -1 never, 0 at once."""
        if self.replay.is_behind:
            return 0
        due = [self.keeper.deadline_us, self._registration.deadline_us]
        if self._state is not None:
            if not self._state.index.is_whole:
                return 0
            due += [self._state.heartbeats.look_at_us, *(task.at_us for task in self._periodic_tasks)]
            due += [self._idleness.deadline_us, self._channels.deadline_us, self._due.deadline_us]
        return min(each for each in due if each >= 0)

    def misplaced(self, offset: Offset, decided_for: Offset) -> None:
        """A batch did not go where it was decided for: what follows from it is not so. Told when all fates are."""
        self._fault = ImageFailed(
            f"the controller's records went to offset {offset}, and were decided for {decided_for}: somebody else "
            "appends to this log"
        )

    def on_committed(self, now_us: Micros) -> None:
        """The high watermark moved. ImageFailed stops the replica."""
        if self._fault is not None:
            raise self._fault
        if self._state is not None:  # before the image takes it in: whoever waits need not wait for that
            self._due.on_committed(self._state.image.brokers, now_us)
        self.replay.turn()
        self.on_turn(now_us)

    def on_turn(self, now_us: Micros) -> None:
        """Something happened to the replica: it may lead, or have stopped leading. What was decided in the turn is
        written."""
        if self._state is not None and not self._leads:
            self.lose()
        if self._state is None and self._may_begin:
            self._begin(now_us)
        if self._state is not None:
            self._due.on_turn(self._state.image.brokers, now_us)
            self._channels.on_image(self.replay.image)
        raft = self._replica.raft
        if raft.leader_id != NO_NODE and raft.epoch != self._led_epoch:
            self._led_epoch = raft.epoch
            self.tally.new_leaders += 1
        is_known = self._state is not None or self._forwarding.has_leader
        self._registration.on_turn(raft.leader_id if is_known else NO_NODE, raft.epoch)
        if self._is_push_due:
            self._is_push_due = False
            self._shell.push()

    def on_tick(self, now_us: Micros) -> None:
        self.replay.turn()
        self.keeper.on_tick(now_us)
        self.on_turn(now_us)
        self._registration.on_tick(now_us, lambda request, on_response: self._register(request, on_response, now_us))
        state = self._state
        if state is None:
            return
        state.index.advance()
        heartbeats = state.heartbeats
        if heartbeats.look_at_us <= now_us:
            look_us = self._settings.session_timeout_us // SESSION_LOOKS
            if now_us - heartbeats.look_at_us > look_us:  # this thread, or the whole machine, stood still
                heartbeats.paused(now_us - heartbeats.look_at_us, now_us)
            while self._state is not None and (records := brokers.fence_expired(state, now_us)):
                if not self._append(state, records, now_us, is_atomic=False):
                    break
            end_us = heartbeats.next_end_us()
            heartbeats.look_at_us = now_us + look_us
            if end_us is not None and now_us < end_us:  # else it could not be fenced now
                heartbeats.look_at_us = min(end_us, heartbeats.look_at_us)
            self._unfence_exempt(state, now_us)
        for task in self._periodic_tasks:
            if task.at_us <= now_us and self._state is not None:
                self._append(state, task.find(state, now_us), now_us, is_atomic=False)
        if self._state is not None and self._idleness.is_due(now_us):
            self._append(state, [NoOpRecord()], now_us)
        self._channels.on_tick(now_us)

    def _register(self, request: ControllerRegistrationRequest, on_response: OnResponse, now_us: Micros) -> None:
        """This node's own controller: the active one decides about itself."""
        state = self._state
        if state is None:
            self._forwarding.send_to_leader(request, on_response, now_us)
        else:
            is_written = self._append(state, brokers.register_controller(state, request).records, now_us)
            on_response(ControllerRegistrationResponse() if is_written else None)

    # --- the lead -----------------------------------------------------------------------------------------------------

    @property
    def _leads(self) -> bool:
        return self._shell.is_leader and self._replica.raft.epoch == self._epoch

    @property
    def _may_begin(self) -> bool:
        """This replica leads, its image holds all of the log, and that has said the metadata.version."""
        if not self._shell.is_leader or self.replay.image.features.metadata_version is None:
            return False
        with self._shell.lock:
            return self.replay.next_offset == self._shell.log.end_offset

    def _begin(self, now_us: Micros) -> None:
        raft = self._replica.raft
        kraft_version = raft.describe().kraft_version
        self._promise = check_session(self._settings.session_timeout_us)
        self._epoch = raft.epoch
        self._beats.begin(self._epoch)
        self._state = ControllerState(
            self._settings,
            self.replay.image,
            self.replay.next_offset,
            kraft_version,
            now_us,
            node_id=raft.key.id,
            static_voters=() if kraft_version else raft.voters.ids,
            steady=self._beats,
            fault_of_raising=raft.fault_of_raising,
            make=self._make,
        )
        self._state.heartbeats.look_at_us = now_us + self._settings.session_timeout_us // SESSION_LOOKS
        self._periodic_tasks = periodic_tasks(self._settings, now_us)
        self._channels.begin(raft.key.id, self._epoch)
        if self.replay.is_in_transaction:
            ended = self._append(self._state, [AbortTransactionRecord(reason="Controller failover")], now_us)
            if not ended:  # what came next would be inside it, and be thrown away with it
                self._state = None

    def lose(self) -> None:
        """The lead is over, or its records' fate is open: whoever waits asks the next leader."""
        self._state = None
        self._beats.forget_all()
        self._periodic_tasks = []
        self.replay.foreseen.clear()
        self._channels.lose()
        self._due.lose()

    # --- requests -----------------------------------------------------------------------------------------------------

    def on_request(self, request: Request, now_us: Micros) -> None:
        """Decide it now, and answer when that is committed."""
        if self._state is None or not self._leads:
            self.on_turn(now_us)
        to_decide = read(request)
        if to_decide is None:
            return
        if isinstance(to_decide.message, DescribeQuorumRequest):
            self._replica.ask_raft(to_decide.token, to_decide.message, to_decide.version, to_decide.answer, now_us)
        else:
            self._decide(to_decide, now_us)
            spare_images(self._kernels)

    def _decide(self, request: ControllerRequest, now_us: Micros) -> None:
        state, message = self._state, request.message
        answer = answered_anywhere(message, request.version, is_forwarded=request.is_forwarded)
        if answer is not None:
            request.answer(answer)
            return
        if state is None:
            request.refuse(ErrorCode.NOT_CONTROLLER)
            return
        note_contact(state, message, now_us)
        forwarded, next_offset = request.is_forwarded, state.next_offset
        try:
            decision = decide(state, message, request.version, now_us, self._chance, is_forwarded=forwarded)
        except Refused as refused:
            request.refuse(refused.code, refused.text)
            return
        except FastQuorumError:
            raise  # it means that this replica stops
        except Exception as error:
            self._contain(error, request, now_us)
            return
        if not self._append(state, decision.records, now_us, request, is_atomic=decision.is_atomic):
            return
        if decision.kraft_version is not None and not self._raise(state, decision.kraft_version, request, now_us):
            return
        if isinstance(message, LEASES) and not decision.records and not self._confirm(state, request, now_us):
            return
        done(state, message)
        if isinstance(message, BrokerHeartbeatRequest) and not decision.records:
            self._keep_steady(state, message, request.version, decision.answer)
        is_read_at_brokers = forwarded and state.next_offset > next_offset
        self._due.add(state.next_offset, request, decision.answer, is_read_at_brokers=is_read_at_brokers)
        self._due.on_committed(state.image.brokers, now_us)
        if isinstance(message, BrokerRegistrationRequest):
            self._unfence_exempt(state, now_us)

    def _contain(self, error: Exception, request: ControllerRequest, now_us: Micros) -> None:
        """A fault of ours that a request brought to light is told of, and the request refused: nothing was changed, and
        who asks the next controller would end that, too."""
        what = f"{type(request.message).__name__} met a fault of this controller: {error!r}"
        sentence = f"{what}; nothing was changed; report it, with what was asked"
        self._replica.notice("request_met_a_fault", NO_NODE, sentence, now_us)
        request.refuse(ErrorCode.UNKNOWN_SERVER_ERROR, what)

    def _confirm(self, state: ControllerState, request: ControllerRequest, now_us: Micros) -> bool:
        """Have the answer that lets a broker act on wait until it is sure that nobody else was elected before the
        request came: a record that is appended now and committed shows that. False: nothing can be appended."""
        is_confirmed = self._shell.is_confirmed(self._promise.confirmed_us, now_us)
        return is_confirmed or self._append(state, [NoOpRecord()], now_us, request)

    def _keep_steady(
        self, state: ControllerState, request: BrokerHeartbeatRequest, version: int, answer: Message
    ) -> None:
        """Have the next heartbeat that says the same answered where it arrives."""
        heartbeats = state.heartbeats
        is_caught_up = heartbeats.is_caught_up(request.broker_id, request.current_metadata_offset)
        if is_caught_up and heartbeats.is_steady(request, self._shell.high_watermark):
            offset_min = heartbeats.caught_up_at(request.broker_id)
            self._beats.keep(steady_beat(self._codec, request, version, offset_min, answer))

    def _raise(self, state: ControllerState, kraft_version: int, request: ControllerRequest, now_us: Micros) -> bool:
        """Have the quorum raise it, behind all that was decided before and with it. False: whoever asked is told that
        nobody knows what comes of it, as the rest of it is written."""
        next_offset = self._replica.raise_kraft_version(kraft_version, state.next_offset, now_us)
        if next_offset == UNKNOWN_OFFSET:
            request.refuse(ErrorCode.REQUEST_TIMED_OUT, "the quorum's log takes nothing now: ask again")
            return False
        state.kraft_version_raised(kraft_version, next_offset)
        return self._append(state, [NoOpRecord()], now_us, request)  # which the answer waits for

    def _unfence_exempt(self, state: ControllerState, now_us: Micros) -> None:
        """Whoever counts as active without heartbeats is unfenced at once."""
        while self._state is state and (records := brokers.unfence_exempt(state)):
            if not self._append(state, records, now_us, is_atomic=False):
                break

    def _append(
        self,
        state: ControllerState,
        records: Sequence[Message],
        now_us: Micros,
        request: ControllerRequest | None = None,
        *,
        is_atomic: bool = True,
    ) -> bool:
        """Written, and the state after it. False if not all of it can be: whoever asked is told why. Of a piece that
        does not fit the image, which is a fault of ours, nothing is written, and nothing follows from it."""
        piece, start = len(records) if is_atomic else min(len(records), RECORDS_PER_BATCH_MAX), 0
        while start < len(records):
            code, text = self._append_piece(state, records[start : start + piece], now_us)
            if code is ErrorCode.POLICY_VIOLATION and not is_atomic and piece > 1:
                piece = min(piece, len(records) - start) // 2 or 1  # more than fits into a batch: a dead broker must go
                continue
            if code is not ErrorCode.NONE:
                if request is not None:
                    is_late = code is ErrorCode.REQUEST_TIMED_OUT and isinstance(
                        request.message, BrokerHeartbeatRequest
                    )
                    self.tally.timed_out_heartbeats += is_late
                    request.refuse(code, text)
                if start or request is None:
                    self._look_again(now_us)
                return False
            start += piece
        return True

    def _look_again(self, now_us: Micros) -> None:
        """Something was cut off: leaders may be missing that could be elected."""
        for task in self._periodic_tasks:
            task.begin_again(now_us + AGAIN_US)

    def _append_piece(
        self, state: ControllerState, records: Sequence[Message], now_us: Micros
    ) -> tuple[ErrorCode, str]:
        level, codec = state.level, self._codec
        try:
            prepared = state.prepare(records)
            values = [encode_metadata_record(record, record_version(record, level), codec) for record in records]
        except (ImageFailed, WireError) as error:
            self.tally.errors += 1
            return ErrorCode.UNKNOWN_SERVER_ERROR, brief(f"the controller has decided what cannot be: {error}")
        code, text = self._write(values, _Ticket(self, state.next_offset), now_us)
        if code is ErrorCode.NONE:
            before = state.image
            state.applied(prepared)
            self.replay.foreseen.add(Step(prepared.base_offset, before, values, prepared.editor, state.image))
        return code, text

    def _write(self, values: Sequence[bytes], ticket: _Ticket, now_us: Micros) -> tuple[ErrorCode, str]:
        # Looked at here, since a batch that waits for its turn would be refused only after others were built on it.
        size_bytes = BATCH_HEADER_BYTES + sum(len(value) + RECORD_OVERHEAD_MAX for value in values)
        if size_bytes > self._batch_bytes_max:
            text = f"{len(values)} records with {size_bytes} bytes do not fit into a batch of {self._batch_bytes_max}"
            return ErrorCode.POLICY_VIOLATION, text
        try:
            is_small = len(values) <= FEW_RECORDS
            self._shell.append(values, ticket, now_us, is_pushed_later=is_small)
            self._is_push_due = self._is_push_due or is_small
        except NotLeader:
            return ErrorCode.NOT_CONTROLLER, ""
        except Overloaded:
            return ErrorCode.REQUEST_TIMED_OUT, "too much waits to be committed"
        except RecordTooLarge as error:
            return ErrorCode.POLICY_VIOLATION, str(error)
        return ErrorCode.NONE, ""
