"""Asking the active controller for a change: found, asked, asked again where it is another's by now.

No change is asked for again once a request may have arrived and its answer did not: whether it happened is then for
the image to say, and the error says where to look. A node that loses the lead answers NOT_CONTROLLER though what it
had begun may still be committed, so that after such an answer nothing is certain either, until another controller
has said what is. Source: Kafka `KafkaAdminClient`; KIP-919.
"""

import argparse
import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from fastquorum.cli.quorum.client import quorum_client
from fastquorum.cli.terminal.output import tell, working
from fastquorum.client.connection import Deadline, NoAnswer, NotSent
from fastquorum.client.quorum import LOOK_AGAIN_S, QuorumClient
from fastquorum.errors import NotReady, PeerProtocolError, RetriableError, UsageError
from fastquorum.types import Endpoint
from fastquorum.wire import API, ApiKey, ErrorCode, Message
from fastquorum.wire.error_codes import error_name

M = TypeVar("M", bound=Message)
T = TypeVar("T")

_LOST: Final = (
    "an earlier try got NOT_CONTROLLER from a node that may have lost the lead during it, and may have succeeded"
)
_NOT_THERE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.BROKER_ID_NOT_REGISTERED)


@dataclass(eq=False)
class ChangeUnknown(RetriableError):
    """A change was asked for, and whether it is, or will be, made is not known."""

    change: str
    reason: str
    look: str
    """The command that shows it."""
    template: ClassVar[str] = "it is not known whether {change} ({reason}): check with `{look}` before you try again"


@dataclass(eq=False)
class ControllerRefused(UsageError):
    """The controller said no, and nothing changed. `error` is Kafka's name of the reason."""

    detail: str = ""
    hint: str = ""
    error: str = ""

    def __str__(self) -> str:
        detail = f": {self.detail}" if self.detail else ""
        text = f"the controller refuses: {self.error}{detail}"
        return f"{text}; {self.hint}" if self.hint else text


def only(answers: Sequence[T]) -> T:
    """Return the only element of a response's list. PeerProtocolError if it is not the only one."""
    if len(answers) != 1:
        raise PeerProtocolError(f"one result was expected, and the response has {len(answers)}")
    return answers[0]


@contextlib.contextmanager
def asking(arguments: argparse.Namespace, *, change: str, look: str) -> Iterator["ControllerClient"]:
    """Yield what asks the quorum that the arguments name (`add_quorum`) for one change."""
    with quorum_client(arguments) as client:
        yield ControllerClient(client, Deadline(arguments.timeout), change=change, look=look)


class ControllerClient:
    """Asks the active controller for one change."""

    def __init__(
        self, client: QuorumClient, deadline: Deadline, *, change: str, look: str, tells_interruption: bool = True
    ) -> None:
        """`change` goes on after "whether", as in "topic t was created"; `look` is the command that shows it.

        `tells_interruption`: an interruption prints that the change may have been made.
        """
        self._client = client
        self.deadline: Final = deadline
        self._change = change
        self._look = look
        self._tells_interruption = tells_interruption
        self._lost_by = ""
        """A node that was asked, and may have lost the lead over it, and what it said."""

    def ask(self, request: Message, version: int, response_type: type[M], code_of: Callable[[M], int]) -> M:
        """The active controller's answer.

        Args:
            code_of: the error code in an answer that stands for the whole of it.
        Raises:
            ChangeUnknown: a request was sent, and what came of it is not known.
            NotReady: none was.
            UsageError: the leader is not a controller.
        """
        while True:
            endpoint = self._find()
            try:
                with working("waiting for the controller"):
                    self._check_serves(endpoint, request, version)
                    answer = self._ask(endpoint, request, version, response_type)
            except NotSent as error:
                reason = str(error)
            else:
                code = code_of(answer)
                if code == ErrorCode.REQUEST_TIMED_OUT:
                    raise self._unknown(f"{endpoint.address} answered {error_name(code)}")
                if code != ErrorCode.NOT_CONTROLLER:
                    return answer
                reason = self._lost_by = f"{endpoint.address} answered {error_name(code)}"
            self._client.forget_leader()
            if self.deadline.left_s <= LOOK_AGAIN_S:
                raise self._unlucky(reason)
            time.sleep(LOOK_AGAIN_S)

    def check(self, code: int, text: str | None) -> None:
        """ControllerRefused, unless the code is NONE."""
        if code != ErrorCode.NONE:
            hint = f"`{self._look}` shows what there is" if code in _NOT_THERE else ""
            raise ControllerRefused(text or "", _LOST if self._lost_by else hint, error_name(code))

    def _find(self) -> Endpoint:
        try:
            return self._client.controller(self.deadline).endpoint
        except NotReady as error:
            raise self._unlucky(error.reason) from error

    def _check_serves(self, endpoint: Endpoint, request: Message, version: int) -> None:
        """Check before sending: a node that is not a controller hangs up on a controller's requests, and then their
        outcome would be unknown. NotSent."""
        if not self._client.serves(endpoint, type(request), version, self.deadline):
            name = API[ApiKey(type(request).__wire__.api_key)].name
            raise UsageError(
                f"{endpoint.address} leads, and does not serve {name}: it is not a controller",
                "run every node of the quorum with --controller",
            )

    def _ask(self, endpoint: Endpoint, request: Message, version: int, response_type: type[M]) -> M:
        try:
            return self._client.ask(endpoint, request, version, response_type, self.deadline, math.inf)
        except NoAnswer as error:
            raise self._unknown(str(error)) from error
        except KeyboardInterrupt:
            if self._tells_interruption:
                tell(f"interrupted: it is not known whether {self._change}: check with `{self._look}`")
            raise

    def _unlucky(self, reason: str) -> RetriableError:
        """No controller took it in time."""
        if not self._lost_by:
            return NotReady(reason)
        return self._unknown(reason if reason == self._lost_by else f"{self._lost_by}; {reason}")

    def _unknown(self, reason: str) -> ChangeUnknown:
        return ChangeUnknown(self._change, reason, self._look)
