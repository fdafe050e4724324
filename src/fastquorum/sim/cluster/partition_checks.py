"""The promises of one partition and its changes that need no memory."""

from fastquorum.controller.image import Image
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.partition import Partition, Recovery
from fastquorum.sim.report import Violation
from fastquorum.types import NodeId


def check_partition(partition: Partition, image: Image, where: str) -> None:
    """Check C1, C2 and C9."""
    replicas, leader = partition.replicas, partition.leader
    if not replicas or len(set(replicas)) < len(replicas):
        raise Violation("C2", f"{where}: replicas {replicas}")
    if not set(partition.isr) <= set(replicas):
        raise Violation("C2", f"{where}: ISR {partition.isr} of replicas {replicas}")
    if not partition.isr and not image.features.is_elr_enabled:
        raise Violation("C2", f"{where}: nobody is in sync: {partition}")
    if not set(partition.elr) <= set(replicas):
        raise Violation("C9", f"{where}: {partition.elr} are eligible, of replicas {replicas}")
    if not partition.has_leader:
        return
    broker = image.brokers.get(leader)
    if leader not in partition.isr or broker is None or broker.fenced:
        raise Violation("C1", f"{where}: {leader} leads, and is {broker}: {partition}")
    if broker.in_controlled_shutdown and len(partition.isr) > 1:
        raise Violation("C1", f"{where}: {leader} leads in its shutdown: {partition}")


def check_move(old: Partition, new: Partition, where: str) -> None:
    """Check C10."""
    if not (set(new.adding) <= set(new.replicas) and set(new.removing) <= set(new.replicas)):
        raise Violation("C10", f"{where}: {new}")
    gone = set(old.replicas) - set(new.replicas)
    if not gone:
        return
    if gone <= set(old.adding):  # taken back, or another target
        return
    target = set(new.replicas)
    is_shrinking = len(target) < len(set(old.replicas) - set(old.adding))
    awaited = target if is_shrinking else set(old.adding) & target  # as Kafka 4.3: KAFKA-15665
    # Who is elected from outside the ISR is so after that, and may be in the same change.
    is_from_outside = new.isr == (new.leader,) and new.leader not in old.isr + old.elr
    were_in_sync = awaited <= set(new.isr) or (is_from_outside and awaited <= set(old.isr))
    if not were_in_sync and not new.is_reassigning:
        raise Violation("C10", f"{where}: {sorted(gone)} go before {sorted(awaited)} are in sync: {new} after {old}")


def is_elected_alone(old: Partition, new: Partition, after: Image, may_be_unclean: bool) -> bool:
    """Return whether an election made a new leader the whole ISR: an unclean one (KIP-704), or one from the ELR, which
    comes when nobody of the ISR is left (KIP-966)."""
    if new.leader == old.leader or new.isr != (new.leader,):
        return False
    if new.recovery == Recovery.RECOVERING:
        return may_be_unclean
    return new.leader in old.elr and not any(_is_active(after, member) for member in old.isr)


def _is_active(image: Image, broker_id: NodeId) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active


def is_unclean_allowed(image: Image, topic_name: str) -> bool:
    for resource in (Resource(ResourceType.TOPIC, topic_name), Resource(ResourceType.BROKER, "")):
        values = image.configs.get(resource)
        if values is not None and (value := values.get("unclean.leader.election.enable")) is not None:
            return value == "true"
    return False
