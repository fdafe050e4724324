"""InitProducerId: ids for idempotent producers. Sans-IO.

An id is the leader's epoch and a counter: nobody else leads that epoch, and nobody leads it twice, so that nothing need
be stored for ids to be unique for ever. Clients ask whichever node they know: a follower asks the leader for them.
Transactions are not served. Source: KIP-98; KIP-360 (a producer without transactions always gets a new id).
"""

from typing import TYPE_CHECKING, Final

from fastquorum.node.inbound import Request
from fastquorum.types import NO_NODE, Epoch, Micros
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.producers import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from fastquorum.node.door import Door

COUNTER_BITS: Final = 31


class ProducerIds:
    """Makes ids while this node leads, and asks for them while it does not."""

    def __init__(self, door: "Door") -> None:
        self._door = door
        self._epoch: Epoch = -1
        self._next = 0
        self._asked: dict[int, Request] = {}
        """Requests that the leader was asked about, by relay number."""

    def on_request(self, request: Request, message: InitProducerIdRequest, now_us: Micros) -> None:
        if message.transactional_id is not None:
            self._refuse(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        replica = self._door.replica
        if replica.is_leader:
            new_id = self._new_id(replica.raft.epoch)
            if new_id < 0:
                self._refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                return
            self._door.answer(request, InitProducerIdResponse(producer_id=new_id, producer_epoch=0))
            return
        leader = self._door.leader()
        if leader.id == NO_NODE or leader.endpoint is None:
            self._refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return
        number = replica.relay(leader.id, leader.endpoint, InitProducerIdRequest(transactional_id=None), now_us)
        self._asked[number] = request

    def on_relayed(self, number: int, answer: Message | None) -> None:
        """What the leader said; None if nothing."""
        request = self._asked.pop(number, None)
        if request is None:
            return
        if isinstance(answer, InitProducerIdResponse) and answer.error_code == ErrorCode.NONE:
            self._door.answer(request, answer)
        else:
            self._refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def _new_id(self, epoch: Epoch) -> int:
        """-1 when the epoch's are used up, all 2^31 of them: the next epoch has more."""
        if epoch != self._epoch:
            self._epoch, self._next = epoch, 0
        if self._next >> COUNTER_BITS:
            return -1
        number, self._next = self._next, self._next + 1
        return epoch << COUNTER_BITS | number

    def _refuse(self, request: Request, code: ErrorCode) -> None:
        """Both codes are retriable for every client: nobody leads yet, or there are no transactions."""
        self._door.answer(request, InitProducerIdResponse(error_code=code, producer_epoch=-1))
