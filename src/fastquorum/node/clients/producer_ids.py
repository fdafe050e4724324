"""InitProducerId: ids for idempotent producers. Sans-IO.

Clients ask whichever node they know: a follower asks the leader for them. Transactions are not served. Source: KIP-98;
KIP-360 (a producer without transactions always gets a new id).
"""

from typing import Final

from fastquorum.node.clients.context import ClientContext
from fastquorum.node.metadata.forwarding import Forwarding
from fastquorum.node.network.requests import Request
from fastquorum.types import Micros
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.producers import InitProducerIdRequest, InitProducerIdResponse

_NOT_YET: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class ProducerIds:
    """Gives out ids while this node leads, and has the leader give them out while it does not."""

    def __init__(self, context: ClientContext, forwarding: Forwarding) -> None:
        self._context = context
        self._forwarding = forwarding

    def on_request(self, request: Request, message: InitProducerIdRequest, now_us: Micros) -> None:
        if message.transactional_id is not None:
            self._refuse(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        replica = self._context.replica
        if not replica.is_leader:
            passed_on, refusal = InitProducerIdRequest(transactional_id=None), _refusal(_NOT_YET)
            self._forwarding.forward(request, passed_on, refusal, now_us, _id_or_refusal)
            return
        new_id = replica.shell.new_producer_id()
        if new_id < 0:
            self._refuse(request, _NOT_YET)
            return
        request.reply(InitProducerIdResponse(producer_id=new_id, producer_epoch=0))

    def _refuse(self, request: Request, code: ErrorCode) -> None:
        request.reply(_refusal(code))


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    """The two codes used are retriable for every client: nobody leads yet, or there are no transactions."""
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)


def _id_or_refusal(answer: Message) -> Message:
    """Whatever a leader has against it, the client tries again."""
    is_good = isinstance(answer, InitProducerIdResponse) and answer.error_code == ErrorCode.NONE
    return answer if is_good else _refusal(_NOT_YET)
