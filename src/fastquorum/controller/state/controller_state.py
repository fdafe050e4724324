"""The state of the active controller: the image with all that it has appended, committed or not, and derived facts.

Dropped with the lead. Only records change it, once they are in the log (`applied`); requests read it.
Source: KIP-631; Kafka `QuorumController`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from immutables import Map

from fastquorum.controller.configs.effective import EffectiveConfigs
from fastquorum.controller.definitions.checks import is_whole, trimmed
from fastquorum.controller.image import Image
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.features import KRAFT_VERSION, Level
from fastquorum.controller.image.image import ImageEditor
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.registrations import Broker
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.image.vector import Make
from fastquorum.controller.state.broker_info import is_legacy
from fastquorum.controller.state.heartbeats import Heartbeats
from fastquorum.controller.state.index import PartitionIndex, PartitionKey
from fastquorum.controller.state.partition_change import ElectionKind, PartitionChange, Rules
from fastquorum.controller.state.replica_candidates import ReplicaCandidates, default_directory
from fastquorum.controller.state.topic_name_collisions import TopicNameCollisions
from fastquorum.kernels import SteadyBeats
from fastquorum.types import NO_NODE, Micros, NodeId, Offset, Uuid
from fastquorum.wire.message import Message
from fastquorum.wire.records.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from fastquorum.wire.records.cluster import AbortTransactionRecord, FeatureLevelRecord

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION: Final = "unclean.leader.election.enable"
_DEFAULTS: Final = Resource(ResourceType.BROKER, "")
"""The resource of every broker's defaults."""
_NOTHING: Final[Map[str, str]] = Map()
_HEEDED: Final[frozenset[type[Message]]] = frozenset(
    {
        RegisterBrokerRecord,
        BrokerRegistrationChangeRecord,
        FenceBrokerRecord,
        UnfenceBrokerRecord,
        UnregisterBrokerRecord,
        FeatureLevelRecord,
    }
)
"""Records that change a session, or the outcome of a heartbeat."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The settings of a controller. Names and defaults are Kafka's."""

    cluster_id: str
    session_timeout_us: Micros = 9_000_000
    """`broker.session.timeout.ms`"""
    default_replication_factor: int = 1
    num_partitions: int = 1
    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    leader_imbalance_check_us: Micros = 300_000_000
    """`leader.imbalance.check.interval.seconds`: how often preferred leaders are looked for; 0: never, as with
    `auto.leader.rebalance.enable=false`."""
    unclean_election_check_us: Micros = 300_000_000
    """`unclean.leader.election.interval.ms`: how often leaders are looked for where nobody leads."""
    leader_imbalance_per_run_max: int = 1000
    """Most elections of one run of the periodic balancing, or of the search for leaderless partitions."""
    delete_topics: bool = True
    """`delete.topic.enable`"""
    remote_storage: bool = False
    """`remote.log.storage.system.enable`: brokers have remote storage, so that topics may use it."""
    older_brokers: bool = False
    """Whether brokers may use KIP-343's and KIP-380's requests."""

    @property
    def of_topics(self) -> dict[str, str]:
        """The values, by Kafka's names, for topics that do not set them; only those that differ from Kafka's
        defaults."""
        values = {}
        if self.min_insync_replicas != 1:
            values[MIN_INSYNC_REPLICAS] = str(self.min_insync_replicas)
        if self.unclean_leader_election:
            values[UNCLEAN_LEADER_ELECTION] = "true"
        return values


class _ChangeRules(NamedTuple):
    """The rules for changes of a topic's partitions in one image, with one broker gone or back."""

    image: Image
    topic_id: Uuid
    gone: NodeId | None
    back: NodeId | None
    rules: Rules
    election: ElectionKind
    """The election that the topic's configuration allows."""

    def are_of(self, image: Image, topic_id: Uuid, gone: NodeId | None, back: NodeId | None) -> bool:
        return self.image is image and self.topic_id == topic_id and self.gone == gone and self.back == back


class Prepared(NamedTuple):
    """Records that fit the image, if they are written at this offset."""

    base_offset: Offset
    records: Sequence[Message]
    editor: ImageEditor


class ControllerState:
    """The state of the active controller; used by one thread."""

    def __init__(
        self,
        settings: ControllerSettings,
        image: Image,
        next_offset: Offset,
        kraft_version: int,
        now_us: Micros,
        *,
        node_id: NodeId = NO_NODE,
        static_voters: Sequence[NodeId] = (),
        make: Make = tuple,
        steady: SteadyBeats | None = None,
        fault_of_raising: Callable[[int], str] = lambda _: "there is no quorum to raise it",
    ) -> None:
        """Begin the lead of node_id; everything below next_offset is in the image. `static_voters`: those of a quorum
        whose voters cannot change; none of any other. `fault_of_raising` returns why the quorum cannot be raised to a
        kraft.version; empty if it can. `make` is as in `Vector.updated`. `steady` is the fast path, begun for this
        lead, that answers heartbeats which change nothing."""
        self.settings: Final = settings
        self.node_id: Final = node_id
        self.static_voters = tuple(static_voters)
        self.fault_of_raising: Final = fault_of_raising
        self.kraft_version = kraft_version
        """The level that the quorum has finalized; it is not in the image."""
        self.image = image
        self.next_offset = next_offset
        """The offset of the next record that is appended."""
        self._make: Final = make
        self.index: Final = PartitionIndex(lambda: self.image.topics)
        self.name_collisions: Final = TopicNameCollisions(lambda: self.image.topics)
        self.heartbeats: Final = Heartbeats(image.brokers, now_us, settings.session_timeout_us, next_offset - 1, steady)
        for broker in image.brokers.values():
            if self.is_exempt(broker):
                self.heartbeats.exempt(broker.id)
        self._own: Final = Resource(ResourceType.BROKER, str(node_id))
        self._replica_candidates = ReplicaCandidates(image.brokers)
        self._effective: EffectiveConfigs | None = None
        self._change_rules: _ChangeRules | None = None
        """The rules that were used last: many partitions of one topic change together."""

    @property
    def level(self) -> Level:
        """The metadata.version. The first records of a log set it, before any request is decided."""
        level = self.image.features.metadata_version
        assert level is not None, "no record has set the metadata.version"
        return level

    @property
    def finalized_features(self) -> dict[str, int]:
        """Every finalized feature, with the quorum's own."""
        return self.image.features.by_name() | {KRAFT_VERSION: self.kraft_version}

    def prepare(self, records: Sequence[Message]) -> "Prepared":
        """Prepare the next records; heartbeats that they concern leave the fast path. ImageFailed if they do not fit:
        they must not be written, since no controller could read the log behind them."""
        editor = ImageEditor(self.image, self._make)
        for offset, record in enumerate(records, self.next_offset):
            if not isinstance(record, AbortTransactionRecord):  # what it ends never came into the image
                editor.apply(record, offset)
            if record.__class__ in _HEEDED:
                self._announce(record)
        return Prepared(self.next_offset, records, editor)

    def applied(self, prepared: "Prepared") -> None:
        """Apply prepared records once they are in the log at their offset."""
        base_offset, records, editor = prepared
        assert base_offset == self.next_offset, "something else was written meanwhile"
        self.index.take(editor)
        self.name_collisions.update(*editor.topics.name_changes())
        self.image = editor.finish()
        self.next_offset = base_offset + len(records)
        for offset, record in enumerate(records, base_offset):
            if record.__class__ in _HEEDED:  # most are others
                self._heed(record, offset)

    def _announce(self, record: Message) -> None:
        """Take heartbeats that a record concerns off the fast path. It may be committed as soon as it is written,
        before it is applied: no answer may ignore it meanwhile."""
        match record:
            case (
                RegisterBrokerRecord(broker_id=broker_id)
                | BrokerRegistrationChangeRecord(broker_id=broker_id)
                | UnregisterBrokerRecord(broker_id=broker_id)
                | FenceBrokerRecord(id=broker_id)
                | UnfenceBrokerRecord(id=broker_id)
            ):
                self.heartbeats.forget_steady_of(broker_id)
            case FeatureLevelRecord():
                self.heartbeats.forget_steady()

    def _heed(self, record: Message, offset: Offset) -> None:
        brokers, heartbeats = self.image.brokers, self.heartbeats
        match record:
            case RegisterBrokerRecord(broker_id=broker_id) if broker_id in brokers:
                heartbeats.registered(brokers[broker_id], offset)
                if self.is_exempt(brokers[broker_id]):
                    heartbeats.exempt(broker_id)
            case BrokerRegistrationChangeRecord(broker_id=broker_id) if broker_id in brokers:
                heartbeats.changed(brokers[broker_id], offset)
            case FenceBrokerRecord(id=broker_id) | UnfenceBrokerRecord(id=broker_id) if broker_id in brokers:
                heartbeats.changed(brokers[broker_id], offset)
            case UnregisterBrokerRecord(broker_id=broker_id):
                heartbeats.unregistered(broker_id)

    def kraft_version_raised(self, kraft_version: int, next_offset: Offset) -> None:
        """Note that the quorum has appended a raised kraft.version; its voters are no longer static."""
        self.kraft_version, self.static_voters = kraft_version, ()
        self.next_offset = next_offset

    # --- looking ------------------------------------------------------------------------------------------------------

    def is_active(self, broker_id: NodeId) -> bool:
        """Return whether a broker is registered, unfenced and not shutting down."""
        return self.replica_candidates.is_active(broker_id)

    @property
    def replica_candidates(self) -> ReplicaCandidates:
        """The brokers that can have replicas now."""
        if self._replica_candidates.brokers is not self.image.brokers:
            self._replica_candidates = ReplicaCandidates(self.image.brokers)
        return self._replica_candidates

    @property
    def effective_configs(self) -> EffectiveConfigs:
        """The configurations of topics that are created now."""
        configs = self.image.configs
        own, everybodys = configs.get(self._own, _NOTHING), configs.get(_DEFAULTS, _NOTHING)
        known = self._effective
        if known is None or known.own is not own or known.everybodys is not everybodys:
            known = self._effective = EffectiveConfigs(own, everybodys, self.settings.of_topics)
        return known

    def is_exempt(self, broker: Broker) -> bool:
        """Return whether the broker counts as active, with or without heartbeats."""
        return self.settings.older_brokers and is_legacy(broker)

    def topic_setting(self, topic_name: str, name: str) -> str | None:
        """Return the value that is set for the topic, else for this node, else as every broker's default; None: not
        set."""
        configs = self.image.configs
        for resource in (Resource(ResourceType.TOPIC, topic_name), self._own, _DEFAULTS):
            values = configs.get(resource)
            if values is not None and name in values:
                return values[name]
        return None

    def min_isr(self, topic: Topic) -> int:
        """Return the least ISR, at most the number of replicas: otherwise no ISR could ever reach it."""
        value = self.topic_setting(topic.name, MIN_INSYNC_REPLICAS)
        is_number = value is not None and is_whole(value)  # or somebody else has written it
        wanted = int(trimmed(value)) if value is not None and is_number else self.settings.min_insync_replicas
        first = topic.partitions.get(0)
        return wanted if first is None else min(wanted, len(first.replicas))

    def allows_unclean_election(self, topic: Topic) -> bool:
        value = self.topic_setting(topic.name, UNCLEAN_LEADER_ELECTION)
        return self.settings.unclean_leader_election if value is None else value.strip().lower() == "true"

    # --- changing a partition -----------------------------------------------------------------------------------------

    def change(
        self,
        key: PartitionKey,
        *,
        gone: NodeId | None = None,
        back: NodeId | None = None,
        election: ElectionKind | None = None,
    ) -> PartitionChange:
        """Begin a partition's change, in which `gone` may not lead, though it is still registered as active, and `back`
        may, though it is registered as fenced. The election is the one that the topic allows, unless given.
        """
        topic = self.image.topics.by_id[key.topic_id]
        before = topic.partitions.get(key.partition_id)
        assert before is not None, f"{topic.name}-{key.partition_id} is indexed and not there"
        return self.change_of(topic, key.partition_id, before, gone=gone, back=back, election=election)

    def change_of(
        self,
        topic: Topic,
        partition_id: int,
        before: Partition,
        *,
        gone: NodeId | None = None,
        back: NodeId | None = None,
        election: ElectionKind | None = None,
    ) -> PartitionChange:
        """Begin a change, as `change` does, of a partition that was looked up already."""
        change_rules = self._change_rules
        if change_rules is None or not change_rules.are_of(self.image, topic.id, gone, back):
            change_rules = self._change_rules = self._change_rules_of(topic, gone, back)
        return PartitionChange(topic.id, partition_id, before, change_rules.rules, election or change_rules.election)

    def _change_rules_of(self, topic: Topic, gone: NodeId | None, back: NodeId | None) -> _ChangeRules:
        is_active = self.replica_candidates.is_active
        may_lead: Callable[[NodeId], bool] = is_active
        if gone is not None or back is not None:
            may_lead = lambda broker: broker != gone and (broker == back or is_active(broker))  # noqa: E731
        rules = Rules(
            self.level,
            self.min_isr(topic),
            self.image.features.is_elr_enabled,
            may_lead,
            self.replica_candidates.online_directories,
            self.default_directory,
        )
        election = ElectionKind.UNCLEAN if self.allows_unclean_election(topic) else ElectionKind.ONLINE
        return _ChangeRules(self.image, topic.id, gone, back, rules, election)

    def default_directory(self, broker_id: NodeId) -> Uuid:
        """See `replica_candidates.default_directory`."""
        return default_directory(self.image.brokers.get(broker_id))


def without(nodes: Iterable[NodeId], gone: NodeId) -> tuple[NodeId, ...]:
    return tuple(each for each in nodes if each != gone)
