"""The part that the asyncio and the blocking membership share: its state, and whether it may act."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from fastquorum.broker.agent import View
from fastquorum.broker.cluster import Cluster
from fastquorum.broker.io.control_port import listening
from fastquorum.broker.io.keeping import Keeping
from fastquorum.broker.io.running import RunningMember
from fastquorum.broker.options import joining
from fastquorum.broker.partitions import HeldPartition, held_partitions
from fastquorum.broker.states import State
from fastquorum.config import SECOND
from fastquorum.controller.image import Image
from fastquorum.controller.image.registrations import Listener
from fastquorum.errors import ClosedError, ConfigError, Fenced, NotAdmitted, UsageError
from fastquorum.home import expanded
from fastquorum.kernels import load
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.directory import new_directory_id
from fastquorum.node.io.handles import Guarded
from fastquorum.opening import check_interpreter
from fastquorum.timeouts import wait_s
from fastquorum.types import NodeId, Offset, Uuid

STOP_S: Final = 5.0
"""How long a stopping member waits for its leads to move away, in seconds."""
_GRACE_S: Final = 2.0


def begin(options: Mapping[str, Any]) -> RunningMember:
    """Begin a member in its own thread; it is offline until `register`.

    Raises:
        ConfigError: an option is missing, unknown, or cannot be used.
        UsageError: this is a subinterpreter.
        DirectoryError, CorruptionError, StorageFailed, ImageFailed: of the directory that it is to keep metadata in.
    """
    check_interpreter()
    settings, config, is_ready, name, path = joining(options, new_directory_id(), new_directory_id())
    kernels, sock = load(name), None
    if config.control_requests:
        settings, sock = listening(settings)
    if path is None:
        member = RunningMember(settings, config, kernels, is_ready=is_ready, listening=sock)
    else:
        keeping = Keeping.open(expanded(path), settings.cluster_id, settings.broker_id, kernels)
        try:
            kept = keeping.load()
            member = RunningMember(settings, config, kernels, is_ready=is_ready, keeping=keeping, kept=kept)
        except BaseException:
            keeping.close()
            raise
    member.start()
    return member


def check_start(start: object) -> None:
    """Raise ConfigError if it cannot be called."""
    if start is not None and not callable(start):
        raise ConfigError(f"{start!r} is not a function of the membership", "", "start")


class Holding(Guarded):
    """One membership: the part that both twins share. It may be used from any thread."""

    _CHILD_HINT = "join in one process only"

    def __init__(self, member: RunningMember) -> None:
        super().__init__()
        self._member = member
        self._held: tuple[View, tuple[HeldPartition, ...]] | None = None

    def _is_unclosed(self) -> bool:
        return not self._member.is_ending

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__} of broker {self._member.settings.broker_id}>"

    @property
    def broker_id(self) -> NodeId:
        return self._member.settings.broker_id

    @property
    def incarnation_id(self) -> Uuid:
        """The id of this process; another process under the same broker id has another."""
        return self._member.settings.incarnation_id

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners at which others reach this program, as it registers them."""
        return self._member.settings.listeners

    @property
    def state(self) -> State:
        """offline, registering, fenced, online, stopping or gone. `is_active` decides whether the program may act."""
        return self._member.view.state

    @property
    def epoch(self) -> int:
        """The fencing token: the broker epoch, which grows with every registration of this id; -1 before the first."""
        return self._member.view.epoch

    @property
    def is_active(self) -> bool:
        """Whether this program may act as the broker now. It reads the clock, so it is right even after a pause of any
        length."""
        view = self._member.view  # before the clock: a lease that is read late is over early
        return now_us() < view.lease_until_us and not self._member.is_over

    def check(self, epoch: int | None = None) -> int:
        """Return the epoch to act under. Call it right before acting, and pass the epoch to the resource that refuses
        older ones.

        Args:
            epoch: the epoch that the work began under; it must not go on unnoticed under another.
        Raises:
            Fenced: it may not act now, or not under that epoch any more.
            ClosedError: the membership is over; or the error that ended it.
            UsageError: that is no epoch.
        """
        if isinstance(epoch, bool) or not isinstance(epoch, int | None):
            raise UsageError(f"{epoch!r} is not an epoch", "give what wait_active returned")
        return self._admitted(epoch).epoch

    def cluster(self, listener: str | None = None) -> Cluster:
        """Return the cluster as its clients see it, from `image`, without fenced brokers.

        Args:
            listener: the listener that the client uses; brokers without it are left out, too. None: any listener.
        """
        return Cluster(self._member.view.image, listener)

    @property
    def image(self) -> Image:
        """The cluster's metadata, as far as it was read; it may be older than what the controllers decide by. With
        `control_requests` nothing is read: see `view.told`."""
        return self._member.view.image

    @property
    def metadata_offset(self) -> Offset:
        """Offset of the last record in `image`; -1 if nothing was read."""
        return self._member.view.metadata_offset

    @property
    def view(self) -> View:
        """The state, the image and the rest, at one moment."""
        return self._member.view

    def partitions(self) -> tuple[HeldPartition, ...]:
        """Return the partitions with a replica on this broker, from `image` or as they were pushed. To act on one,
        `check()` as well."""
        view, held = self._member.view, self._held
        if view.told is not None:
            return tuple(partition for _, partition in sorted(view.told.held.items()))
        if held is None or held[0].image.topics is not view.image.topics:
            held = view, tuple(held_partitions(view.image.topics, self.broker_id))
            self._held = held
        return held[1]

    def set_ready(self, is_ready: bool = True) -> None:
        """Set whether the program is ready to act; the controller unfences or fences it by that."""
        self._raise_if_over()
        self._member.set_ready(is_ready)

    def request_stop(self, timeout: float | None = None) -> None:
        """Begin to stop, as `close` does, without waiting. On a signal rather leave the block, as `sys.exit` in its
        handler does."""
        self._member.request_stop(int(_stop_s(timeout) * SECOND))

    # --- inner --------------------------------------------------------------------------------------------------------

    def _admitted(self, epoch: int | None = None) -> View:
        """Return the view by which it may act now. Raises as `check`."""
        view = self._member.view
        if now_us() < view.lease_until_us and epoch in (None, view.epoch) and not self._member.is_over:
            return view
        self._raise_if_over()
        if epoch not in (None, view.epoch):
            raise Fenced(self.broker_id, epoch or 0, f"it is at epoch {view.epoch} by now")
        reason = view.reason or "no heartbeat was acknowledged in time"
        raise Fenced(self.broker_id, view.epoch, reason)

    def _raise_if_over(self) -> None:
        view = self._member.view
        if view.error is not None:
            raise copy.copy(view.error)  # one that is raised again and again gathers tracebacks
        if view.state is State.GONE or self._member.is_over:
            raise ClosedError("the membership is over", "join again")

    def _raise_if_failed(self) -> None:
        error = self._member.view.error
        if error is not None and not isinstance(error, ClosedError):
            raise copy.copy(error)

    def _not_admitted(self, timeout: float) -> NotAdmitted:
        return NotAdmitted(f"after {timeout} s, {self._member.view.reason}")

    @staticmethod
    def _whole(timeout: float | None) -> float:
        """Return how long a stopping member lasts at most."""
        return _stop_s(timeout) + _GRACE_S


def _stop_s(timeout: float | None) -> float:
    """Return the timeout; STOP_S if none is given. UsageError if it is not a time."""
    seconds = wait_s(timeout)
    return STOP_S if seconds is None else seconds
