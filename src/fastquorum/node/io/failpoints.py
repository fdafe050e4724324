"""Named places where a process can be told to die, fail or dawdle: how tests find out what a crash there leaves behind.

`FASTQUORUM_FAILPOINTS="before-election-save=crash@2,after-segment-sync=sleep:50"` in the environment arms them when
the process starts; `@n` means the n-th time only. Off, which is always but in tests, `failpoint` is one look at an
empty dictionary, and the ports are not even wrapped (`injected`). Source: FreeBSD's fail(9); etcd's gofail.
"""

import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from fastquorum.errors import ConfigError

VARIABLE: Final = "FASTQUORUM_FAILPOINTS"

_AROUND: Final = (
    "election-save",  # LMDB's transaction: the vote
    "segment-create",
    "segment-write",
    "segment-zero-fill",
    "segment-truncate",
    "segment-sync",  # a sync in the replica's thread: roll, truncation, close
    "flush-submit",  # the flusher's sync, off the replica's thread
    "flush-count",  # synced, not yet counted
    "file-remove",
    "file-rename",
    "directory-sync",
    "mark-replace",
    "epochs-replace",
    "file-replace",
    "recovery-write",
    "recovery-zero-fill",
    "recovery-truncate",
    "recovery-sync",
    "recovery-remove",
    "recovery-replace",
    "send-vote-request",
    "send-vote-response",
    "send-fetch-request",
    "send-fetch-response",
    "send-begin-quorum-epoch-request",
    "send-begin-quorum-epoch-response",
    "send-end-quorum-epoch-request",
    "send-end-quorum-epoch-response",
    "send-produce-response",
)
NAMES: Final = tuple(f"{when}-{what}" for what in _AROUND for when in ("before", "after"))
"""Every failpoint there is."""

Action = Literal["crash", "eio", "sleep", "off"]


class InjectedFault(OSError):
    """What `eio` raises; ports map it as they map the disk's own errors."""


@dataclass(slots=True)
class Failpoint:
    """One armed failpoint."""

    action: Action
    sleep_ms: int = 0
    only_hit: int = 0
    """0: every time."""
    hits: int = field(default=0)


class Fire(NamedTuple):
    """The action of a failpoint that is hit now."""

    action: Action
    sleep_ms: int


class Failpoints:
    """The armed ones, by name. Counting is the only state, under a lock of its own: callers come from several
    threads.
    """

    def __init__(self) -> None:
        self._armed: dict[str, Failpoint] = {}
        self._refused: ConfigError | None = None
        self._guard = threading.Lock()

    @property
    def are_armed(self) -> bool:
        return bool(self._armed)

    def arm_at_start(self, text: str) -> None:
        """Arm like `arm`, when the module is imported. An error is kept for `check`: an import may not raise it."""
        try:
            self.arm(text)
        except ConfigError as error:
            self._refused = error

    def check(self) -> None:
        """Raise what was wrong with the text at start. Before a node starts."""
        if self._refused is not None:
            raise self._refused

    def arm(self, text: str, source: str = "environment") -> None:
        """Replace what is armed by what `text` says. ConfigError names the part that is wrong."""
        self._armed = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, point = _parse(part, source)
            if point.action != "off":
                self._armed[name] = point

    def arm_native(self, arm: Callable[[str, str, int, int], object]) -> None:
        """Have those that lie in native code act there, too. Each side counts its own passes."""
        for name, point in self._armed.items():
            arm(name, point.action, point.sleep_ms, point.only_hit)

    def __call__(self, name: str) -> None:
        """The failpoint of that name: nothing, unless it is armed."""
        if self._armed:
            self._hit(name)

    def _hit(self, name: str) -> None:
        fire = self._fire(name)
        if fire is None:
            return
        match fire.action:
            case "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            case "eio":
                raise InjectedFault(errno.EIO, f"failpoint {name}")
            case "sleep":
                time.sleep(fire.sleep_ms / 1_000)

    def _fire(self, name: str) -> Fire | None:
        with self._guard:
            point = self._armed.get(name)
            if point is None:
                return None
            point.hits += 1
            if point.only_hit not in (0, point.hits):
                return None
            return Fire(point.action, point.sleep_ms)


def _parse(part: str, source: str) -> tuple[str, Failpoint]:
    name, equals, action = part.partition("=")
    action, at, nth = action.partition("@")
    if name not in NAMES:
        raise ConfigError(f"{name!r} is not a failpoint", f"one of {', '.join(NAMES)}", VARIABLE, source)
    kind, _, milliseconds = action.partition(":")
    is_bad = not equals or (at and not (nth.isdigit() and int(nth) > 0)) or (kind == "sleep") != milliseconds.isdigit()
    only_hit = int(nth) if at and not is_bad else 0
    match kind:
        case "crash" | "eio" | "off" if not is_bad:
            return name, Failpoint(kind, 0, only_hit)
        case "sleep" if not is_bad:
            return name, Failpoint("sleep", int(milliseconds), only_hit)
        case _:
            raise ConfigError(
                f"{part!r} is not an action", "crash, eio, sleep:<ms> or off, perhaps with @<n>", VARIABLE, source
            )


failpoint: Final = Failpoints()
failpoint.arm_at_start(os.environ.get(VARIABLE, ""))
