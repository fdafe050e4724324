"""KIP-380's control requests on their way: again until answered, and never to a process they are not meant for."""

from fastquorum.broker.control_gate import Act, ControlGate, Refuse
from fastquorum.controller.brokers.control_queue import ControlQueue
from fastquorum.controller.brokers.control_requests import ControlRequest
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.controller_heartbeat import BrokerState
from fastquorum.wire.messages.inter_broker import LeaderAndIsrRequest, UpdateMetadataRequest
from tests.controller.test_control_requests import Telling, gist, three


def requests(*epochs: int, broker_id: int = 1) -> list[ControlRequest]:
    return [ControlRequest(broker_id, UpdateMetadataRequest(broker_epoch=epoch)) for epoch in epochs]


def test_one_at_a_time_in_order_and_again_until_it_is_answered() -> None:
    queue, (first, second) = ControlQueue(), requests(5, 5)
    queue.add([first, second])
    assert queue.next(1) is queue.next(1) is first
    queue.answered(first, ErrorCode.NONE)
    assert queue.next(1) is second
    queue.answered(first, ErrorCode.NONE)
    assert queue.next(1) is second, "that was said twice"
    queue.answered(second, ErrorCode.NONE)
    assert queue.next(1) is None
    assert queue.waiting == ()


def test_what_is_refused_for_its_epoch_is_not_sent_again_nor_what_waits_for_the_same_process() -> None:
    """ "...it will respond back with STALE_BROKER_EPOCH error. The controller will not resend the request." """
    queue, (first, second, newer), (other,) = ControlQueue(), requests(5, 5, 9), requests(5, broker_id=2)
    queue.add([first, second, newer, other])
    queue.answered(first, ErrorCode.STALE_BROKER_EPOCH)
    assert queue.next(1) is newer
    assert queue.next(2) is other
    assert queue.waiting == (1, 2)


def test_a_queue_that_is_cut_keeps_what_may_be_under_way() -> None:
    queue, (first, second, third) = ControlQueue(), requests(5, 5, 5)
    queue.add([first, second, third])
    assert (queue.count(1), queue.count(2)) == (3, 0)
    queue.cut(1)
    queue.cut(2)
    assert (queue.next(1), queue.count(1)) == (first, 1)
    queue.answered(first, ErrorCode.NONE)
    assert queue.waiting == ()


def test_what_is_meant_for_a_process_that_is_known_to_be_gone_is_not_sent() -> None:
    controller = three()
    queue = ControlQueue()
    queue.add(requests(controller.broker(1).epoch) + requests(controller.broker(2).epoch, broker_id=2))
    controller.bounce(1)
    newer = controller.broker(1).epoch
    (waiting,) = requests(newer)
    queue.add([waiting])
    queue.registered(controller.state.image.brokers)
    assert queue.next(1) is waiting
    assert queue.next(2) is not None
    controller.say(2, BrokerState.INACTIVE)
    queue.registered(controller.state.image.brokers)
    assert queue.next(2) is None


def deliver(queue: ControlQueue, broker_id: int, gate: ControlGate) -> list[str]:
    """All that waits for a broker; what came of each."""
    found = []
    while (request := queue.next(broker_id)) is not None:
        (effect,) = gate.offer(len(found), request.message)
        found.append(f"{'acts' if isinstance(effect, Act) else 'refuses'}: {gist([request])[0][1]}")
        queue.answered(request, effect.response.error_code if isinstance(effect, Refuse) else ErrorCode.NONE)
    return found


def test_a_broker_that_bounces_while_it_shuts_down_keeps_its_replicas() -> None:
    """The KIP's first example, from the images to the broker: its former run is told to stop replicas, and the new one,
    which gets that, refuses it, is told everything, and acts on that."""
    controller: Telling = three()
    queue, gate = ControlQueue(), ControlGate()
    controller.shut_down(1)
    queue.add(controller.requests())
    controller.mark()
    controller.bounce(1)
    gate.registered(controller.broker(1).epoch)
    assert deliver(queue, 1, gate) == ["refuses: lead"], "and the rest is not sent"
    queue.add(controller.requests())
    assert deliver(queue, 1, gate) == ["acts: update", "acts: lead"]
    (first,) = [each.message for each in controller.requests() if gist([each])[0][:2] == (1, "lead")]
    assert isinstance(first, LeaderAndIsrRequest)
    assert [each.topic_name for each in first.topic_states] == ["t"]
