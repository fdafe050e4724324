"""The agent of a program that is, or embeds, a broker: membership, and fencing, from a controller quorum.

`join` (asyncio; `fastquorum.sync.join` for threads) registers with the controllers, ours or Kafka 4.3's, beats, follows
the metadata log, fences itself in time and goes in good order. `lifecycle` says what is guaranteed; `told_agent` what
differs for one that is told by control requests. Everything but `io` is sans-IO. Source: KIP-343, KIP-380, KIP-631.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fastquorum.broker.agent import View
    from fastquorum.broker.cluster import Cluster, ServedPartition
    from fastquorum.broker.io.membership import Membership
    from fastquorum.broker.io.opening import join
    from fastquorum.broker.options import JoinOptions
    from fastquorum.broker.partitions import HeldPartition
    from fastquorum.broker.states import State
    from fastquorum.broker.told import Told
    from fastquorum.controller.image.registrations import Listener

_EXPORTS: Final = {
    "Cluster": "fastquorum.broker.cluster",
    "HeldPartition": "fastquorum.broker.partitions",
    "JoinOptions": "fastquorum.broker.options",
    "Listener": "fastquorum.controller.image.registrations",
    "Membership": "fastquorum.broker.io.membership",
    "ServedPartition": "fastquorum.broker.cluster",
    "State": "fastquorum.broker.states",
    "Told": "fastquorum.broker.told",
    "View": "fastquorum.broker.agent",
    "join": "fastquorum.broker.io.opening",
}

__all__ = [
    "Cluster",
    "HeldPartition",
    "JoinOptions",
    "Listener",
    "Membership",
    "ServedPartition",
    "State",
    "Told",
    "View",
    "join",
]


def __getattr__(name: str) -> Any:
    """Load what is asked for; once. The pure modules here are used without the rest, too."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'fastquorum.broker' has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
