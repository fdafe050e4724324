"""What whoever runs a node has to act on, since nothing comes right by itself: each said once, however often it
happens.

Belongs to the replica's thread.
"""

from typing import Final

from fastquorum.config import SECOND
from fastquorum.errors import CorruptionError, WireError
from fastquorum.node.ports import ReplicaListener
from fastquorum.types import Micros, NodeId

AGAIN_US: Final = 60 * SECOND
"""Within this time one thing is said of one node: what strangers send, or a node that is damaged, must not fill a log,
nor keep from it what others are at fault in."""
NOTICES_MAX: Final = 64
"""Things said within AGAIN_US."""


class Notices:
    """Passes on to the listener what was not said before."""

    def __init__(self, listener: ReplicaListener) -> None:
        self._listener = listener
        self._noticed: dict[tuple[str, NodeId], tuple[str, Micros]] = {}
        """What was said last of which node, and when; the oldest first."""

    def give(self, event: str, about: NodeId, sentence: str, now_us: Micros) -> None:
        """`event` names the kind for machines; `sentence` says for people what is wrong, where, and what to do."""
        key = event, about
        last = self._noticed.get(key)
        if last is not None and (last[0] == sentence or now_us < last[1] + AGAIN_US):
            return
        if last is None and len(self._noticed) >= NOTICES_MAX:
            oldest = next(iter(self._noticed))
            if now_us < self._noticed[oldest][1] + AGAIN_US:
                return
            del self._noticed[oldest]
        self._noticed.pop(key, None)
        self._noticed[key] = sentence, now_us
        self._listener.on_notice(event, sentence)

    def on_refused_answer(self, node_id: NodeId, error: WireError | CorruptionError, now_us: Micros) -> None:
        """A frame that a node answered with cannot be taken in, and is asked for again, for ever."""
        self.give(
            "answer_refused",
            node_id,
            f"what node {node_id} answers cannot be taken in, and is asked for again: {error}; find out which version "
            "it runs, and what its log holds there",
            now_us,
        )
