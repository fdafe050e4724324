"""Bugs of controllers put back on purpose, for the simulated cluster to catch: those of Kafka's history, and the rules
that nothing else would show."""

from collections.abc import Sequence
from typing import Any

from fastquorum.controller.brokers import fencing
from fastquorum.controller.brokers import lifecycle as brokers
from fastquorum.controller.decisions import Decision
from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.image import ImageEditor
from fastquorum.controller.image.registrations import Brokers
from fastquorum.controller.partitions import isr, topics
from fastquorum.controller.state.controller_state import ControllerState, Prepared
from fastquorum.controller.state.heartbeats import Heartbeats
from fastquorum.controller.state.partition_change import PartitionChange
from fastquorum.errors import ImageFailed
from fastquorum.node.metadata import controller as controller_role
from fastquorum.node.metadata.controller import MetadataController
from fastquorum.node.metadata.due_answers import DueAnswers
from fastquorum.node.metadata.folding import Foreseen, Step
from fastquorum.node.metadata.replay import Replay
from fastquorum.node.metadata.snapshots import SnapshotKeeper
from fastquorum.raft import voter_updates
from fastquorum.raft.core import Core
from fastquorum.raft.raft import Raft
from fastquorum.raft.roles.leader import Leader
from fastquorum.raft.voters import LogHistory
from fastquorum.storage.log.log import Log
from fastquorum.types import Micros, NodeId, Offset, OffsetAndEpoch, VoterSet
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerRegistrationRequest
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord
from tests.raft.mutants import Patcher
from tests.sim.mutants import Mutant


def _k50(patcher: Patcher) -> None:
    def all_on_the_same_state(state: ControllerState, now_us: Micros) -> list[Message]:
        records: list[Message] = []
        heartbeats = state.heartbeats
        for broker_id, tracked in heartbeats._brokers.items():
            if (
                not tracked.fenced
                and tracked.contact_us is not None
                and heartbeats._is_over(tracked.contact_us, now_us)
            ):
                records += fencing.fence(state, state.image.brokers[broker_id])
        return records

    patcher.setattr(brokers, "fence_expired", all_on_the_same_state)


def _k51(patcher: Patcher) -> None:
    def of_the_right_epoch(state: ControllerState, broker_id: NodeId, epoch: int) -> bool:
        broker = state.image.brokers.get(broker_id)
        return broker is not None and epoch in (brokers.NO_BROKER_EPOCH, broker.epoch)

    patcher.setattr(isr, "_is_eligible", of_the_right_epoch)


def _k51_epochs(patcher: Patcher) -> None:
    patcher.setattr(isr, "_is_eligible", lambda state, broker_id, epoch: state.is_active(broker_id))


def _k52(patcher: Patcher) -> None:
    judged = isr.Proposals._error

    def fatal(*arguments: Any) -> ErrorCode:
        code = judged(*arguments)
        return ErrorCode.INVALID_REQUEST if code is ErrorCode.NOT_CONTROLLER else code

    patcher.setattr(isr.Proposals, "_error", fatal)


def _k53(patcher: Patcher) -> None:
    """A broker that waits for its answer counts as silent."""
    touch, answer, noted = Heartbeats.touch, DueAnswers.on_committed, controller_role.note_contact
    last: dict[int, tuple[MetadataController, Micros]] = {}

    def not_yet(state: ControllerState, message: Message, now_us: Micros) -> None:
        if not isinstance(message, BrokerHeartbeatRequest):
            noted(state, message, now_us)

    def when_answered(due: DueAnswers, brokers: Brokers, now_us: Micros) -> None:
        before = list(due._uncommitted)
        answer(due, brokers, now_us)
        role, ticked_us = last.get(id(due), (None, 0))
        state = role.state if role is not None else None
        for each in before[: len(before) - len(due._uncommitted)]:
            message = each.request.message
            if state is not None and isinstance(message, BrokerHeartbeatRequest):
                touch(state.heartbeats, message.broker_id, message.broker_epoch, ticked_us)

    on_tick = MetadataController.on_tick

    def tick(role: MetadataController, now_us: Micros) -> None:
        last[id(role._due)] = (role, now_us)
        on_tick(role, now_us)

    patcher.setattr(controller_role, "note_contact", not_yet)
    patcher.setattr(DueAnswers, "on_committed", when_answered)
    patcher.setattr(MetadataController, "on_tick", tick)


def _k54(patcher: Patcher) -> None:
    heartbeat = brokers.heartbeat

    def up_to_the_end(state: ControllerState, request: BrokerHeartbeatRequest) -> Decision:
        if request.current_metadata_offset < state.next_offset - 1:
            request.current_metadata_offset = -1
        return heartbeat(state, request)

    patcher.setattr(brokers, "heartbeat", up_to_the_end)


def _k55(patcher: Patcher) -> None:
    register = brokers.register

    def always_a_new_epoch(
        state: ControllerState, request: BrokerRegistrationRequest, version: int, now_us: Micros
    ) -> Decision:
        decision = register(state, request, version, now_us)
        decision.records[-1].broker_epoch = decision.answer.broker_epoch = state.next_offset  # type: ignore[attr-defined]
        return decision

    patcher.setattr(brokers, "register", always_a_new_epoch)


def _k56(patcher: Patcher) -> None:
    register = brokers.register

    def of_any_cluster(
        state: ControllerState, request: BrokerRegistrationRequest, version: int, now_us: Micros
    ) -> Decision:
        request.cluster_id = state.settings.cluster_id
        return register(state, request, version, now_us)

    patcher.setattr(brokers, "register", of_any_cluster)


def _k57(patcher: Patcher) -> None:
    """A record that no replay takes, written without a look at what it does."""
    fence, prepare = fencing.fence, ControllerState.prepare

    def of_another_epoch(state: ControllerState, broker: Any) -> list[Message]:
        *rest, change = fence(state, broker)
        assert isinstance(change, BrokerRegistrationChangeRecord)
        change.broker_epoch += 1
        return [*rest, change]

    def whatever_it_is(state: ControllerState, records: Sequence[Message]) -> Prepared:
        try:
            return prepare(state, records)
        except ImageFailed:
            return Prepared(state.next_offset, records, ImageEditor(state.image, state._make))

    patcher.setattr(fencing, "fence", of_another_epoch)
    patcher.setattr(ControllerState, "prepare", whatever_it_is)


def _k58(patcher: Patcher) -> None:
    def with_any(change: PartitionChange) -> None:
        isr = tuple(each for each in change.isr if each not in change.removing)
        replicas = tuple(each for each in change.replicas if each not in change.removing)
        if (change.removing or change.adding) and isr and replicas:
            change.isr, change.replicas, change.removing, change.adding = isr, replicas, (), ()

    patcher.setattr(PartitionChange, "_complete_reassignment", with_any)


def _k59(patcher: Patcher) -> None:
    def though_fenced(change: PartitionChange) -> bool:
        known = change.before.last_known_elr
        return change.rules.is_elr_enabled and not (change.isr or change._elr) and len(known) == 1 and known[0] >= 0

    patcher.setattr(PartitionChange, "_last_known_leader_is_back", though_fenced)


def _k62(patcher: Patcher) -> None:
    patcher.setattr(topics, "TOPIC_NAME", "")


def _duplicate(patcher: Patcher) -> None:
    patcher.setattr(Heartbeats, "has_session", lambda *_, **__: False)


def _no_grace(patcher: Patcher) -> None:
    begin = Heartbeats.__init__

    def as_if_long_silent(
        self: Heartbeats, known: Brokers, now_us: Micros, session_timeout_us: Micros, *rest: Any
    ) -> None:
        begin(self, known, now_us - session_timeout_us, session_timeout_us, *rest)

    patcher.setattr(Heartbeats, "__init__", as_if_long_silent)


def _answers_early(patcher: Patcher) -> None:
    decide = MetadataController._decide

    def before_it_is_committed(role: MetadataController, request: Any, now_us: Micros) -> None:
        decide(role, request, now_us)
        while role._due._uncommitted:
            role._due._uncommitted.popleft().give()

    patcher.setattr(MetadataController, "_decide", before_it_is_committed)


def _stale(patcher: Patcher) -> None:
    def any_epoch(state: ControllerState, broker_id: NodeId, epoch: int) -> Any:
        broker = state.image.brokers.get(broker_id)
        return broker if broker is not None else standing(state, broker_id, epoch)

    standing = brokers.standing
    patcher.setattr(brokers, "standing", any_epoch)


def _removes_uncovered(patcher: Patcher) -> None:
    def beyond_the_snapshot(keeper: SnapshotKeeper) -> Offset:
        return keeper._shell.log.flushed_end

    remove_before = Log.remove_before

    def without_a_look(log: Log, offset: Offset) -> None:
        latest = log.snapshots.latest
        if latest is None:
            return
        log.snapshots._ids.append(OffsetAndEpoch(offset, latest.epoch))
        try:
            remove_before(log, offset)
        finally:
            log.snapshots._ids[:] = [each for each in log.snapshots._ids if each.offset != offset or each == latest]

    patcher.setattr(SnapshotKeeper, "_keep_from", beyond_the_snapshot)
    patcher.setattr(Log, "remove_before", without_a_look)


def _version_stays(patcher: Patcher) -> None:
    truncate = LogHistory.truncate

    def voters_alone(history: LogHistory[Any], end_offset: Offset) -> None:
        if not isinstance(history.last, int):
            truncate(history, end_offset)

    patcher.setattr(LogHistory, "truncate", voters_alone)


def _version_unheard(patcher: Patcher) -> None:
    reported_voters = voter_updates._reported_voters

    def all_support_it(core: Core, leader: Leader) -> VoterSet:
        return VoterSet([voter._replace(kraft_version_max=1) for voter in reported_voters(core, leader)])

    patcher.setattr(voter_updates, "_reported_voters", all_support_it)


def _version_of_now(patcher: Patcher) -> None:
    patcher.setattr(Raft, "quorum_at", lambda raft, end_offset: (raft.voters, raft.describe().kraft_version))


def _believes_itself(patcher: Patcher) -> None:
    def as_many(foreseen: Foreseen, offset: Offset, values: list[Any], at: int, fold: Fold) -> Step | None:
        steps = foreseen.steps
        while steps and steps[0].base_offset < offset:
            steps.popleft()
        if not steps or steps[0].base_offset != offset or fold.image is not steps[0].before:
            return None
        step = steps.popleft()
        return step if at + len(step.values) <= len(values) else None

    patcher.setattr(Foreseen, "take", as_many)
    patcher.setattr(Foreseen, "clear", lambda _: None)


def _shows_early(patcher: Patcher) -> None:
    def as_decided(replay: Replay) -> Image:
        steps = replay.foreseen.steps
        return steps[-1].after if steps else replay._fold.image

    patcher.setattr(Replay, "image", property(as_decided))


MUTANTS: dict[str, Mutant] = {
    "K50": Mutant("brokers that expire together are fenced on the same state", _k50),  # KAFKA-13173
    "K51": Mutant("a fenced replica joins an ISR", _k51),  # KAFKA-13916, KIP-841
    "K51-epochs": Mutant("a replica joins an ISR by the epoch of its former life", _k51_epochs),  # KIP-903
    "K52": Mutant("what is ahead of the controller is called invalid", _k52),  # KAFKA-14154
    "K53": Mutant("a heartbeat counts when it is answered", _k53),  # KAFKA-15019
    "K54": Mutant("a broker has to have read everything to be unfenced", _k54),  # KAFKA-13959
    "K55": Mutant("the same incarnation gets a new epoch", _k55),  # KAFKA-16952
    "K56": Mutant("a broker of another cluster registers", _k56),  # KAFKA-13528
    "K57": Mutant("a fencing names another epoch, and is written unlooked at", _k57),  # bitnami/containers #80381
    "K58": Mutant("a move is over before all that are added are in sync", _k58),  # KAFKA-15665
    "K59": Mutant("the last known leader is elected though it is fenced", _k59),  # KAFKA-19522
    "K62": Mutant("a user creates the metadata topic", _k62),  # KAFKA-14358
    "C4-duplicate": Mutant("a second incarnation registers while the first is alive", _duplicate),
    "C6": Mutant("a request of a former epoch is served", _stale),
    "C8-failover": Mutant("a new controller takes all brokers for long silent", _no_grace),
    "C16": Mutant("a controller that was replaced takes over what it had foreseen", _believes_itself),
    "C16-early": Mutant("a controller shows what is not committed", _shows_early),
    "S14-controller": Mutant("a request is answered before it is committed", _answers_early),
    "V1-cut-off": Mutant("kraft.version stays raised when its record is cut off", _version_stays),  # KIP-853
    "V1-unheard": Mutant("kraft.version is raised though a voter was not heard", _version_unheard),
    "V1-snapshot": Mutant("a snapshot says the kraft.version of now, not that of its end", _version_of_now),
    "S24": Mutant("the log is removed beyond its snapshots", _removes_uncovered),
}
