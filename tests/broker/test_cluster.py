"""What clients are told of the cluster: where the brokers are that serve."""

from collections.abc import Callable
from pathlib import Path

from fastquorum import sync
from fastquorum.broker import Listener, ServedPartition, View
from tests.api.nodes import WAIT_S
from tests.broker.clusters import create_topic, is_fenced, join, one_controller, seen


def serving(membership: sync.Membership, *broker_ids: int) -> Callable[[View], bool]:
    return lambda _: tuple(membership.cluster().brokers) == broker_ids


def partition(membership: sync.Membership) -> ServedPartition:
    (found,) = membership.cluster().partitions("shards")
    return found


def test_a_fenced_broker_is_left_out_of_the_metadata_that_clients_are_sent(tmp_path: Path) -> None:
    with (
        one_controller(tmp_path) as bootstrap,
        join(bootstrap, 7, host="h7", port=9092) as membership,
        join(bootstrap, 8, host="h8", port=9092) as other,
    ):
        other.wait_active(WAIT_S)
        seen(membership, serving(membership, 7, 8))
        create_topic(bootstrap, "shards", 8, 7)
        seen(membership, lambda _: membership.cluster().partitions("shards"))
        before = partition(membership)
        assert (before.leader, before.replicas, before.isr, before.offline_replicas) == (8, (8, 7), (8, 7), ())
        assert membership.cluster().brokers[8].listeners == (Listener("PLAINTEXT", "h8", 9092, 0),)

        other.set_ready(False)
        seen(membership, lambda view: is_fenced(view, 8))
        assert 8 in membership.image.brokers, "it is registered, as before"
        assert tuple(membership.cluster().brokers) == (7,)
        fenced = partition(membership)
        assert (fenced.leader, fenced.replicas, fenced.isr, fenced.offline_replicas) == (7, (8, 7), (7,), (8,))
        assert fenced.leader_epoch > before.leader_epoch

        other.set_ready()
        seen(membership, serving(membership, 7, 8))


def test_where_the_last_that_was_in_sync_is_fenced_nobody_leads(tmp_path: Path) -> None:
    with one_controller(tmp_path) as bootstrap, join(bootstrap, 7) as membership, join(bootstrap, 8) as other:
        other.wait_active(WAIT_S)
        create_topic(bootstrap, "shards", 8)
        seen(membership, lambda _: membership.cluster().partitions("shards"))
        other.set_ready(False)
        seen(membership, lambda view: is_fenced(view, 8))
        assert (partition(membership).leader, partition(membership).offline_replicas) == (-1, (8,))


def test_brokers_without_the_clients_listener_are_left_out_too(tmp_path: Path) -> None:
    inside = [Listener("INSIDE", "h8", 9094, 0)]
    with (
        one_controller(tmp_path) as bootstrap,
        join(bootstrap, 7, host="h7", port=9092) as membership,
        join(bootstrap, 8, listeners=inside) as other,
    ):
        other.wait_active(WAIT_S)
        seen(membership, serving(membership, 7, 8))
        create_topic(bootstrap, "shards", 8, 7)
        seen(membership, lambda _: membership.cluster().partitions("shards"))
        assert tuple(membership.cluster("PLAINTEXT").brokers) == (7,)
        (seen_outside,) = membership.cluster("PLAINTEXT").partitions("shards")
        assert (seen_outside.leader, seen_outside.offline_replicas) == (-1, (8,))
        assert tuple(membership.cluster("INSIDE").brokers) == (8,)
        assert membership.cluster().partitions("unheard-of") == ()
