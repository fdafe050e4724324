"""The agent of a program that is, or embeds, a broker: membership, and fencing, from a controller quorum.

`join` (asyncio; `fastquorum.sync.join` for threads) registers with the controllers, ours or Kafka 4.3's, sends
heartbeats, follows the metadata log, fences itself in time and stops in good order. `lifecycle` documents the
guarantees; `pushed_agent` the differences for a member that receives control requests. Everything but `io` is sans-IO.
Source: KIP-343, KIP-380, KIP-631.
"""

from typing import TYPE_CHECKING

from fastquorum.lazy import lazy_names

if TYPE_CHECKING:
    from fastquorum.broker.agent import View as View
    from fastquorum.broker.cluster import Cluster as Cluster
    from fastquorum.broker.cluster import ServedPartition as ServedPartition
    from fastquorum.broker.io.membership import Membership as Membership
    from fastquorum.broker.io.opening import join as join
    from fastquorum.broker.options import JoinOptions as JoinOptions
    from fastquorum.broker.partitions import HeldPartition as HeldPartition
    from fastquorum.broker.pushed import Told as Told
    from fastquorum.broker.states import State as State
    from fastquorum.controller.image.registrations import Listener as Listener

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "fastquorum.broker.agent": "View",
        "fastquorum.broker.cluster": "Cluster ServedPartition",
        "fastquorum.broker.io.membership": "Membership",
        "fastquorum.broker.io.opening": "join",
        "fastquorum.broker.options": "JoinOptions",
        "fastquorum.broker.partitions": "HeldPartition",
        "fastquorum.broker.states": "State",
        "fastquorum.broker.pushed": "Told",
        "fastquorum.controller.image.registrations": "Listener",
    },
)
