"""One cluster: its controllers write its log once; it is copied to every replica; then some are damaged.

Sound or not, a directory is as one that a node has closed: formatted, with its log, its snapshots and its vote.
"""

import os
from collections.abc import Callable
from typing import Any, Final

from fastquorum.config import SECOND, QuorumConfig
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.generate.calendar import HOUR, IDLE_US, MINUTE, Calendar
from fastquorum.generate.damage import DAMAGES, Victim, turn_epoch_back
from fastquorum.generate.drafts import DraftDisk
from fastquorum.generate.instant_controller import InstantController
from fastquorum.generate.kinds import Kind, Room, room_of
from fastquorum.generate.life import OrdinaryLife
from fastquorum.generate.options import FAULTS_FROM, SLOT_MINUTES, GenerateOptions
from fastquorum.generate.plans import ClusterPlan
from fastquorum.generate.planted import Planted, replica_name
from fastquorum.generate.setting_up import (
    PermanentTopics,
    create,
    draw_topics,
    register_controllers,
    replication,
    start_brokers,
    topic_requests,
)
from fastquorum.generate.sim_brokers import SimulatedBrokers
from fastquorum.generate.snapshots import PlannedSnapshots
from fastquorum.generate.stories import STORIES
from fastquorum.generate.writing import LogWriter
from fastquorum.generate.wrong_records import PLANTS
from fastquorum.kernels import Kernels
from fastquorum.node.records.bootstrap_records import first_values
from fastquorum.raft.election import ElectionState
from fastquorum.sim.prng import Prng
from fastquorum.storage.format import FormatOptions, format_directory, meta_properties
from fastquorum.storage.identity import Identity, LogKind
from fastquorum.storage.io.state import write_unsynced
from fastquorum.storage.log.checkpoint import data_values
from fastquorum.storage.names import BOOTSTRAP_CHECKPOINT, META_PROPERTIES
from fastquorum.types import NodeId, Offset

TOPICS_AT_US: Final = 90 * SECOND
"""When the first topics are created: all brokers run."""
SEGMENTS: Final = 8
"""Segments of a log, of equal times each; there are more where one gets too large."""
SEGMENT_BYTES: Final = 64 * 1024 * 1024
PREALLOCATE_BYTES: Final = 4096
CALM_US: Final = 15 * MINUTE
"""Calm time before a fault begins, within its own time."""
TAIL_RECORDS: Final = 5
Progress = Callable[[int], None]


class GeneratedCluster:
    """A cluster that is being generated."""

    def __init__(self, path: str, plan: ClusterPlan, options: GenerateOptions, kernels: Kernels) -> None:
        """Take `path`, its directory, which exists and is empty."""
        self._path = path
        self._plan = plan
        self._options = options
        self._kernels = kernels
        self._prng = Prng(plan.seed)
        self._planted: list[Planted] = []
        self._start_offset: Offset = 0
        self._config = QuorumConfig(segment_bytes=SEGMENT_BYTES, preallocate_bytes=PREALLOCATE_BYTES)
        self._first = self._disk(plan.voters.ids[0])
        self._identity = self._format()
        settings = ControllerSettings(plan.cluster_id)
        writer = LogWriter(self._first, kernels, self._config)
        self._controller = InstantController(
            writer, kernels, plan.voters, settings, self._prng.fork(), options.start_ms
        )
        self._sim_brokers = SimulatedBrokers(self._controller, self._prng.fork(), plan.brokers)
        self._calendar = Calendar(self._controller)

    def make(self, progress: Progress) -> dict[str, Any]:
        """Generate the cluster; return its entry in the list."""
        try:
            sizes = draw_topics(self._prng, self._plan.partitions)
            topics = PermanentTopics(sizes)
            self._set_up(sizes, progress)
            life = OrdinaryLife(self._controller, self._sim_brokers, self._calendar, topics, self._prng.fork())
            snapshots = PlannedSnapshots(life, self._options.hours, self._plan.kinds)
            self._plan_life(life)
            for hour in range(self._options.hours):
                self._calendar.run((hour + 1) * HOUR)
                done = self._plan.partitions * (hour + 1) // self._options.hours
                progress(done - self._plan.partitions * hour // self._options.hours)
            end_offset = self._end(life, snapshots)
        except BaseException:
            self._controller.writer.abandon()
            raise
        self._copy()
        self._damage()
        return self._entry(topics, snapshots, end_offset)

    # --- the log ------------------------------------------------------------------------------------------------------

    def _format(self) -> Identity:
        voter = self._plan.voters[0]
        wanted = FormatOptions(
            cluster_id=self._plan.cluster_id,
            node_id=voter.key.id,
            directory_id=voter.key.directory_id,
            voters=self._plan.voters,
            log_kind=LogKind.METADATA,
            is_controller=True,
        )
        return format_directory(self._first, self._kernels, wanted, now_ms=self._options.start_ms)

    def _set_up(self, sizes: list[int], progress: Progress) -> None:
        controller, calendar = self._controller, self._calendar
        controller.now_us = SECOND
        bootstrap = data_values(self._first, self._kernels, BOOTSTRAP_CHECKPOINT)
        controller.elect(self._prng.pick(self._plan.voters.ids), first_values(bootstrap))
        register_controllers(controller, calendar, self._prng)
        start_brokers(calendar, self._sim_brokers)
        requests = topic_requests(self._prng, sizes, replication(self._plan.brokers))
        for number, request in enumerate(requests):

            def make(request: Any = request) -> None:
                self._sim_brokers.beat()
                create(controller, request)
                progress(sum(each.num_partitions for each in request.topics))

            calendar.at(TOPICS_AT_US + number * SECOND, make)

    def _plan_life(self, life: OrdinaryLife) -> None:
        """Plan the ordinary events, and each planted fault or story in its own time."""
        timed = [kind for kind in self._plan.kinds if room_of(kind) is Room.TIME]
        slot_us = SLOT_MINUTES * MINUTE
        from_us = int(self._options.hours * HOUR * FAULTS_FROM)
        slots = self._prng.shuffled(range(self._options.slots))[: len(timed)]
        for kind, slot in zip(timed, slots, strict=True):
            begin_us = from_us + slot * slot_us
            life.keep_calm(begin_us, begin_us + slot_us)
            plant = PLANTS.get(kind) or STORIES[kind]

            def act(plant: Callable[[OrdinaryLife], Planted] = plant) -> None:
                self._planted.append(plant(life))

            self._calendar.at(begin_us + CALM_US + self._prng.randrange(2 * MINUTE), act)
        for number in range(1, SEGMENTS):
            self._calendar.at(number * self._options.hours * HOUR // SEGMENTS + MINUTE, self._controller.writer.roll)
        half_us = HOUR // 2
        life.plan(half_us, max(self._options.hours * HOUR - half_us, half_us))

    def _end(self, life: OrdinaryLife, snapshots: PlannedSnapshots) -> Offset:
        """Stop all brokers and controllers."""
        controller = self._controller
        controller.no_op()
        end_offset = controller.end_offset
        self._planted += snapshots.planted
        if Kind.UNCOMMITTED_TAIL in self._plan.kinds:
            controller.writer.begin_tail()
            for number in range(TAIL_RECORDS):
                controller.now_us += IDLE_US if number else SECOND
                life.configure(self._prng.randrange(life.topics.count), number + 1)
        keep_from = None if self._options.keeps_log else snapshots.keep_from.offset
        self._start_offset = controller.writer.close(keep_from)
        return end_offset

    # --- the replicas -------------------------------------------------------------------------------------------------

    def _disk(self, node_id: NodeId) -> DraftDisk:
        return DraftDisk.open_directory(os.path.join(self._path, replica_name(node_id)), self._kernels, create=True)

    def _copy(self) -> None:
        """Copy the first replica to all the others; then give each its own identity and vote."""
        for voter in self._plan.voters:
            disk = self._first
            if voter is not self._plan.voters[0]:
                self._first.copy_to(os.path.join(self._path, replica_name(voter.key.id)))
                disk = self._disk(voter.key.id)
            identity = self._identity._replace(node_id=voter.key.id, directory_id=voter.key.directory_id)
            disk.replace_file(META_PROPERTIES, meta_properties(identity))
        for voter in self._plan.voters:  # not before all are copied
            identity = self._identity._replace(node_id=voter.key.id, directory_id=voter.key.directory_id)
            leader = self._plan.voters.get(self._controller.leader_id)
            assert leader is not None
            state = ElectionState(self._controller.epoch, leader.key.id, leader.key)
            root = os.path.join(self._path, replica_name(voter.key.id))
            write_unsynced(root, identity.owner, self._kernels, state)

    def _damage(self) -> None:
        kinds = [kind for kind in self._plan.kinds if room_of(kind) is Room.REPLICA]
        leader_id = self._controller.leader_id
        others = self._prng.shuffled([each for each in self._plan.voters.ids if each != leader_id])
        for kind in kinds:
            node_id = leader_id if kind is Kind.UNCOMMITTED_TAIL else others.pop()
            self._planted.append(DAMAGES[kind](self._victim(self._disk(node_id), node_id)))
        for planted in self._planted:  # last, as a log that has it is not opened again
            if planted.kind is Kind.EPOCH_BACKWARDS:
                for node_id in self._plan.voters.ids:
                    turn_epoch_back(self._victim(self._disk(node_id), node_id), planted)

    def _victim(self, disk: DraftDisk, node_id: NodeId) -> Victim:
        tail = tuple(self._controller.writer.tail)
        spared = tuple(each.offset for each in self._planted if each.kind in PLANTS)
        return Victim(disk, self._kernels, self._config, node_id, self._prng.fork(), tail, spared)

    # --- the list -----------------------------------------------------------------------------------------------------

    def _entry(self, topics: PermanentTopics, snapshots: PlannedSnapshots, end_offset: Offset) -> dict[str, Any]:
        plan = self._plan
        is_all = self._options.keeps_log
        kept = [each for each in snapshots.taken if is_all or each.offset >= snapshots.keep_from.offset]
        planted = sorted(self._planted, key=lambda each: each.offset)
        return {
            "cluster_id": plan.cluster_id,
            "directory": plan.directory,
            "brokers": plan.brokers,
            "partitions": topics.partition_count,
            "topics": topics.count,
            "start_offset": self._start_offset,
            "end_offset": end_offset,
            "epoch": self._controller.epoch,
            "checkpoints": [each.offset for each in kept],
            "replicas": [
                {"node_id": each.key.id, "directory": f"{plan.directory}/{replica_name(each.key.id)}"}
                for each in plan.voters
            ],
            "planted": [each.as_json(plan.cluster_id, plan.directory) for each in planted],
        }
