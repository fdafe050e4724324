"""The ordinary events of a healthy cluster, so rare that they do not look like faults.

They are spread evenly, each within half an interval of its turn (the rates are those of ONE cluster of any size):

* a broker is restarted every two hours, three of four times in good order, else it dies and its session ends. It is
  back within four minutes, and in sync within one more. One at a time, and the same one not within three hours.
* one partition's ISR loses a follower every hour, for one to five minutes.
* one partition is moved to another broker every four hours, and is there within six minutes.
* a topic's configuration is changed every two hours, a client's quota every six; a block of producer ids is given out
  every hour.
* a topic of one partition is made every three hours, and deleted an hour later.
* the quorum has another leader every eight hours.
* preferred leaders are looked for every five minutes, and a no-op is written when there was nothing for a minute.
* a snapshot is taken regularly, 24 times in all (12 times of more than 20,000 partitions), but not at the very end.

Nothing of it happens in a calm time, but for what ends by itself; and nothing in the first and last part of an hour.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from fastquorum.config import SECOND
from fastquorum.controller.state.index import PartitionKey
from fastquorum.generate.calendar import HOUR, MINUTE, Calendar
from fastquorum.generate.instant_controller import InstantController
from fastquorum.generate.setting_up import PermanentTopics, create, replication
from fastquorum.generate.sim_brokers import SHUTDOWN_BEATS, SimulatedBrokers
from fastquorum.sim.prng import Prng
from fastquorum.types import Micros, NodeId
from fastquorum.wire.messages.configs import IncrementalAlterConfigsRequest
from fastquorum.wire.messages.partitions import AlterPartitionReassignmentsRequest
from fastquorum.wire.messages.producers import AllocateProducerIdsRequest
from fastquorum.wire.messages.quotas import AlterClientQuotasRequest
from fastquorum.wire.messages.topics import CreateTopicsRequest, DeleteTopicsRequest

LOOK_US: Final = 5 * MINUTE
AGAIN_US: Final = 3 * HOUR
"""Time within which the same broker is not restarted again."""
TOPIC_US: Final = HOUR
"""How long a temporary topic exists."""
REJOIN_PIECES: Final = 10
SESSION_US: Final = 9 * SECOND
_TOPIC: Final = 2
_SET: Final = 0
_Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
_Quota = AlterClientQuotasRequest.EntryData
_Move = AlterPartitionReassignmentsRequest.ReassignableTopic


class OrdinaryLife:
    """The ordinary events of one cluster, once it is set up."""

    def __init__(
        self,
        controller: InstantController,
        sim_brokers: SimulatedBrokers,
        calendar: Calendar,
        topics: PermanentTopics,
        prng: Prng,
    ) -> None:
        self.controller: Final = controller
        self.sim_brokers: Final = sim_brokers
        self.calendar: Final = calendar
        self.topics: Final = topics
        self.prng: Final = prng
        self._calm: list[tuple[Micros, Micros]] = []
        self._restarted_us: dict[NodeId, Micros] = {}
        self._made = self._changes = 0
        self._factor = replication(len(sim_brokers.ids))

    def keep_calm(self, from_us: Micros, to_us: Micros) -> None:
        """Let no ordinary event begin in this time."""
        self._calm.append((from_us, to_us))

    def plan(self, from_us: Micros, to_us: Micros) -> None:
        """Plan all ordinary events between the two times."""
        acts: tuple[tuple[Micros, Callable[[], None], Micros], ...] = (
            (2 * HOUR, self._restart_any, 0),
            (HOUR, self._slow_down_any, 0),
            (4 * HOUR, self._move_any, 0),
            (2 * HOUR, self._configure_any, 0),
            (6 * HOUR, self._set_quota, 0),
            (HOUR, self._give_producer_ids, 0),
            (3 * HOUR, self._make_topic, TOPIC_US),
            (8 * HOUR, self.change_leader, 0),
        )
        for every_us, act, takes_us in acts:
            turn_us = from_us
            while (turn_us := turn_us + every_us) < to_us:
                at_us = turn_us - every_us // 2 + self.prng.randrange(every_us // 2)
                if at_us < to_us - takes_us and not any(a <= at_us <= b for a, b in self._calm):
                    self.calendar.at(at_us, act)
        self.calendar.at(from_us, self._look)

    def _look(self) -> None:
        self.sim_brokers.beat()
        self.controller.look()
        self.calendar.after(LOOK_US, self._look)

    # --- brokers ------------------------------------------------------------------------------------------------------

    def _restart_any(self) -> None:
        now_us = self.controller.now_us
        rested = [each for each in self.sim_brokers.ids if now_us - self._restarted_us.get(each, -AGAIN_US) >= AGAIN_US]
        if rested and self.sim_brokers.are_all_settled:
            down_us = self.prng.between(MINUTE, 4 * MINUTE)
            self.restart(self.prng.pick(rested), down_us, is_crash=self.prng.randrange(4) == 0)

    def restart(
        self,
        broker_id: NodeId,
        down_us: Micros,
        *,
        is_crash: bool,
        rejoin_us: Micros = MINUTE,
        before_return: Callable[[], None] = lambda: None,
    ) -> None:
        """Restart a broker: it stops, is fenced, comes back after this time, and is in sync again rejoin_us later."""
        self._restarted_us[broker_id] = self.controller.now_us
        if is_crash:
            self.sim_brokers.kill(broker_id)
            self.calendar.after(SESSION_US + SECOND, lambda: self._fence(broker_id))
        else:
            self._stop(broker_id, SHUTDOWN_BEATS)
        self.calendar.after(down_us, lambda: self._come_back(broker_id, rejoin_us, before_return))

    def _stop(self, broker_id: NodeId, beats: int) -> None:
        if self.sim_brokers.stop(broker_id):
            return
        if beats > 1:
            self.calendar.after(2 * SECOND, lambda: self._stop(broker_id, beats - 1))
        else:
            self.sim_brokers.kill(broker_id)
            self.calendar.after(SESSION_US + SECOND, lambda: self._fence(broker_id))

    def _fence(self, broker_id: NodeId) -> None:
        """Fence a silent broker; a new leader gives it another session first."""
        self.sim_brokers.fence_silent()
        if not self.sim_brokers.is_running(broker_id) and not self.sim_brokers.is_fenced(broker_id):
            self.calendar.after(SESSION_US, lambda: self._fence(broker_id))

    def _come_back(self, broker_id: NodeId, rejoin_us: Micros, before_return: Callable[[], None]) -> None:
        if not self.sim_brokers.is_fenced(broker_id):  # it would be refused while its former life is believed in
            self.calendar.after(SESSION_US, lambda: self._come_back(broker_id, rejoin_us, before_return))
            return
        before_return()
        self.sim_brokers.start(broker_id)
        self.calendar.after(2 * SECOND, lambda: self.sim_brokers.unfence(broker_id))
        self.calendar.after(5 * SECOND, lambda: self._rejoin(broker_id, rejoin_us))

    def _rejoin(self, broker_id: NodeId, rejoin_us: Micros) -> None:
        led = list(self.sim_brokers.lagging(broker_id).values())
        for number in range(REJOIN_PIECES):
            keys = [key for each in led[number::REJOIN_PIECES] for key in each]
            if keys:
                wait_us = number * rejoin_us // REJOIN_PIECES
                self.calendar.after(wait_us, partial(self.sim_brokers.catch_up, broker_id, keys))

    # --- partitions ---------------------------------------------------------------------------------------------------

    def pick_whole(self, replicas_min: int = 2) -> PartitionKey | None:
        """Return a random partition led by its first replica with all replicas in sync; None if it is hard to find."""
        for _ in range(200):
            key = self.topics.pick(self.controller, self.prng)
            partition = self.sim_brokers.partition(key)
            is_whole = len(partition.isr) == len(partition.replicas) >= replicas_min and not partition.is_reassigning
            is_up = all(self.sim_brokers.is_settled(each) for each in partition.replicas)
            if is_whole and is_up and partition.leader == partition.preferred_leader:
                return key
        return None

    def whole(self) -> PartitionKey:
        """Return what `pick_whole` does; in a calm time partitions are whole."""
        key = self.pick_whole()
        assert key is not None, "in a calm time partitions are whole"
        return key

    def shrink(self, key: PartitionKey) -> NodeId:
        """Remove the last follower from a partition's ISR; return that follower."""
        partition = self.sim_brokers.partition(key)
        follower = [each for each in partition.isr if each != partition.leader][-1]
        self.sim_brokers.propose(partition.leader, {key: [each for each in partition.isr if each != follower]})
        return follower

    def _slow_down_any(self) -> None:
        key = self.pick_whole()
        if key is not None:
            follower = self.shrink(key)
            wait_us = self.prng.between(MINUTE, 5 * MINUTE)
            self.calendar.after(wait_us, lambda: self.sim_brokers.catch_up(follower, [key]))

    def _move_any(self) -> None:
        key = self.pick_whole(1)
        if key is None:
            return
        topic, partition = self.controller.image.topics.by_id[key.topic_id], self.sim_brokers.partition(key)
        others = [
            each
            for each in self.sim_brokers.ids
            if each not in partition.replicas and self.sim_brokers.is_settled(each)
        ]
        if not others:
            return
        new = self.prng.pick(others)
        target = [*partition.replicas[:-1], new]
        wanted = _Move.ReassignablePartition(partition_index=key.partition_id, replicas=target)
        self.controller.ask(AlterPartitionReassignmentsRequest(topics=[_Move(name=topic.name, partitions=[wanted])]))
        self.calendar.after(self.prng.between(MINUTE, 6 * MINUTE), lambda: self._arrive(key, new))

    def _arrive(self, key: PartitionKey, new: NodeId) -> None:
        if self.sim_brokers.is_settled(new):
            self.sim_brokers.catch_up(new, [key])
        else:
            self.calendar.after(MINUTE, lambda: self._arrive(key, new))

    # --- what else is asked -------------------------------------------------------------------------------------------

    def _configure_any(self) -> None:
        self.configure(self.prng.randrange(self.topics.count), self.prng.between(1, 14))

    def configure(self, topic_number: int, days: int) -> None:
        """Change a topic's configuration to another value, in one record."""
        self._changes += 1
        change = _Resource.AlterableConfig(
            name="retention.ms", config_operation=_SET, value=str(days * 86_400_000 + self._changes)
        )
        name = PermanentTopics.name_of(topic_number)
        resource = _Resource(resource_type=_TOPIC, resource_name=name, configs=[change])
        self.controller.ask(IncrementalAlterConfigsRequest(resources=[resource]))

    def _set_quota(self) -> None:
        user = _Quota.EntityData(entity_type="user", entity_name=f"user-{self.prng.randrange(20)}")
        rate = _Quota.OpData(key="producer_byte_rate", value=float(self.prng.between(1, 1000) * 1024))
        self.controller.ask(AlterClientQuotasRequest(entries=[_Quota(entity=[user], ops=[rate])]))

    def _give_producer_ids(self) -> None:
        broker_id = self.prng.pick(self.sim_brokers.ids)
        broker = self.controller.image.brokers[broker_id]
        self.controller.ask(AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker.epoch))

    def _make_topic(self) -> None:
        if not self.sim_brokers.are_all_settled:
            return
        self._made += 1
        name = f"passing-{self._made}"
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=self._factor)
        create(self.controller, CreateTopicsRequest(topics=[topic]))
        self.calendar.after(TOPIC_US, lambda: self._delete_topic(name))

    def _delete_topic(self, name: str) -> None:
        state = DeleteTopicsRequest.DeleteTopicState(name=name)
        self.controller.ask(DeleteTopicsRequest(topics=[state]))

    def change_leader(self) -> None:
        """Elect another voter as the quorum's leader, if there is one."""
        others = [each for each in self.controller.voters.ids if each != self.controller.leader_id]
        self.sim_brokers.beat()
        self.controller.elect(self.prng.pick(others or [self.controller.leader_id]))
