"""What whoever runs a node has to act on, since nothing comes right by itself: each said once, however often it
happens.

Belongs to the replica's thread.
"""

from collections.abc import Callable
from typing import Final

from fastquorum.errors import CorruptionError, WireError
from fastquorum.node.ports import Listener
from fastquorum.raft import events as ev
from fastquorum.types import Endpoint, NodeId
from fastquorum.wire import ErrorCode

NOTICES_MAX: Final = 64
"""Different ones in a replica's life: what strangers send must not fill a log."""


class Notices:
    """Passes on to the listener what was not said before."""

    def __init__(self, listener: Listener, endpoint_of: Callable[[NodeId], Endpoint | None]) -> None:
        self.other_clusters: tuple[NodeId, ...] = ()
        """Voters of another cluster that the listener knows of, ascending."""
        self._listener = listener
        self._endpoint_of = endpoint_of
        self._given: set[tuple[str, str]] = set()

    def give(self, event: str, sentence: str) -> None:
        """`event` names the kind for machines; `sentence` says for people what is wrong, where, and what to do."""
        notice = event, sentence
        if notice not in self._given and len(self._given) < NOTICES_MAX:
            self._given.add(notice)
            self._listener.on_notice(event, sentence)

    def on_event(self, event: ev.Event) -> None:
        """A voter that says that it is of another cluster: raft/ asks again, for ever."""
        if not isinstance(event, ev.ResponseReceived | ev.FetchResponseReceived) or event.source in self.other_clusters:
            return
        if getattr(event.message, "error_code", ErrorCode.NONE) == ErrorCode.INCONSISTENT_CLUSTER_ID:
            self.other_clusters = tuple(sorted((*self.other_clusters, event.source)))
            self._listener.on_other_cluster(event.source, self._endpoint_of(event.source))

    def on_refused_answer(self, node_id: NodeId, error: WireError | CorruptionError) -> None:
        """A frame that a node answered with cannot be taken in, and is asked for again, for ever."""
        self.give(
            "answer_refused",
            f"what node {node_id} answers cannot be taken in, and is asked for again: {error}; find out which version "
            "it runs, and what its log holds there",
        )
