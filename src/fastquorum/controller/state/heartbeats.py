"""The sessions of brokers as the active controller tracks them, and the next state that a heartbeat leads to.

A heartbeat that changes nothing is answered where it arrives (`kernels.beats`), without this module. Those contacts are
collected before any decision depends on them.

Soft state: nothing of it is in the log. It begins with this controller's leadership, when every broker gets a whole
session, and ends with it. A fenced broker gets one, too: its last acknowledged heartbeat may have come just before it
asked to be fenced, and the answer may be lost (`lease`). That session keeps no broker unfenced, but keeps another
incarnation out. A broker is in contact when its request arrives, not when that is decided: a controller that is behind
must not fence a live broker (KAFKA-15019). Source: KIP-631; Kafka `BrokerHeartbeatManager`, `BrokerHeartbeatTracker`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from fastquorum.controller.image.registrations import Broker, Brokers
from fastquorum.kernels import SteadyBeats
from fastquorum.types import Micros, NodeId, Offset
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest

NO_OFFSET: Final = -1
_NEVER_US: Final[Micros] = 1 << 62


class BrokerState(Enum):
    """The state of a broker, or its next one."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    """Unfenced; its leaders are moving away."""
    SHUTDOWN_NOW = auto()
    """Fenced, and free to stop."""

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


@dataclass(slots=True)
class _Tracked:
    """The tracked state of one incarnation of a broker."""

    epoch: int
    fenced: bool
    registered_at: Offset
    """Offset of its registration record; of a fenced broker that registered before this leadership, the last offset
    then."""
    metadata_offset: Offset = NO_OFFSET
    """The offset up to which it has read the metadata, by its last report."""
    shutdown_offset: Offset = NO_OFFSET
    """The offset of the last record that began its controlled shutdown; NO_OFFSET: none has begun."""
    contact_us: Micros | None = None
    """Time of its last contact, in microseconds; None: it has no session."""
    presumed_us: Micros | None = None
    """When this leadership began, if the broker is fenced and the former leader may have been in contact; None: no
    wait."""
    is_exempt: bool = False
    """It sends no heartbeats, and never has a session (KIP-343: a legacy registration)."""
    changed_at: Offset = NO_OFFSET
    """Offset of the last record of this leadership that changed its registration."""
    incarnation_id: int = NO_OFFSET
    """The highest that a heartbeat named, if that is above the epoch (KIP-343)."""


class Heartbeats:
    """The sessions of all registered brokers. Times are those of one monotonic clock."""

    def __init__(
        self,
        brokers: Brokers,
        now_us: Micros,
        session_timeout_us: Micros,
        last_offset: Offset = NO_OFFSET,
        steady: SteadyBeats | None = None,
    ) -> None:
        """Begin a lead: each unfenced broker has a session from now on, whatever its contact with the former leader. A
        fenced one has read its registration once it has read up to `last_offset`, the last record: its epoch may be of
        an earlier record, or its registration amended since. `steady` is the fast path, begun for this lead."""
        self._steady = steady
        self._timeout_us = session_timeout_us
        self.look_at_us: Micros = _NEVER_US
        """When silent brokers are looked for next; the periodic task sets it. Once it is overdue, unread heartbeats may
        wait, and every broker that had a session keeps it until the task runs."""
        self._brokers: dict[NodeId, _Tracked] = {}
        for broker_id, broker in sorted(brokers.items()):
            tracked = _Tracked(broker.epoch, broker.fenced, last_offset if broker.fenced else broker.epoch)
            tracked.contact_us = None if broker.fenced else now_us
            tracked.presumed_us = now_us if broker.fenced else None
            self._brokers[broker_id] = tracked

    # --- what the log says --------------------------------------------------------------------------------------------

    def registered(self, broker: Broker, offset: Offset) -> None:
        """Note a registration record at this offset. Another incarnation begins anew, without a session."""
        tracked = self._brokers.get(broker.id)
        if tracked is None or tracked.epoch != broker.epoch:
            self._brokers[broker.id] = _Tracked(broker.epoch, broker.fenced, offset)
        else:
            tracked.registered_at = offset
        self.changed(broker, offset)

    def changed(self, broker: Broker, offset: Offset) -> None:
        """Note that the record at this offset changed a registration. A fenced broker is no longer shutting down: it
        may stop at its next heartbeat."""
        tracked = self._brokers[broker.id]
        tracked.fenced, tracked.changed_at = broker.fenced, offset
        if broker.fenced:
            tracked.shutdown_offset = NO_OFFSET

    def unregistered(self, broker_id: NodeId) -> None:
        self._brokers.pop(broker_id, None)

    def exempt(self, broker_id: NodeId) -> None:
        tracked = self._brokers[broker_id]
        tracked.is_exempt, tracked.contact_us, tracked.presumed_us = True, None, None

    # --- answered where they arrive -----------------------------------------------------------------------------------

    def is_steady(self, request: BrokerHeartbeatRequest, high_watermark: Offset) -> bool:
        """Return whether the heartbeat that was just decided changed nothing, and the same one will change nothing.

        That holds until the broker's registration changes: it is unfenced, that is committed, and it wants to stay so.
        A heartbeat reports only directories beside that: failed ones are looked at each time, cordoned ones are in the
        registration.
        """
        tracked = self._brokers[request.broker_id]
        wants_nothing = not (request.want_fence or request.want_shut_down or request.offline_log_dirs)
        is_unfenced = not tracked.fenced and tracked.shutdown_offset == NO_OFFSET and not tracked.is_exempt
        return wants_nothing and is_unfenced and tracked.changed_at < high_watermark

    def caught_up_at(self, broker_id: NodeId) -> Offset:
        """Return the offset up to which a broker must have read to know its registration."""
        return self._brokers[broker_id].registered_at

    def forget_steady(self) -> None:
        """Stop all answers on the fast path: the outcome of every heartbeat may have changed."""
        if self._steady is not None:
            self._steady.forget_all()

    def forget_steady_of(self, broker_id: NodeId) -> None:
        """Stop a broker's answers on the fast path: the outcome of its heartbeat changes, and is decided here from now
        on."""
        if self._steady is not None:
            self._steady.forget(broker_id)

    def _collect_steady(self) -> None:
        if self._steady is None:
            return
        for each in self._steady.take_answered():
            self.touch(each.broker_id, each.broker_epoch, each.contact_us)
            tracked = self._brokers.get(each.broker_id)
            if tracked is not None and tracked.epoch == each.broker_epoch:
                tracked.metadata_offset = max(tracked.metadata_offset, each.metadata_offset)

    # --- incarnations -------------------------------------------------------------------------------------------------

    def incarnation_id(self, broker_id: NodeId) -> int:
        """Return the latest known incarnation: that of the registration, or a later believed one. Source: KIP-343."""
        tracked = self._brokers[broker_id]
        return max(tracked.epoch, tracked.incarnation_id)

    def believe(self, broker_id: NodeId, incarnation_id: int) -> None:
        """Note a later incarnation than the registered one. Only this controller knows it, and only until the next
        registration."""
        self._brokers[broker_id].incarnation_id = incarnation_id

    # --- sessions -----------------------------------------------------------------------------------------------------

    def touch(self, broker_id: NodeId, epoch: int, now_us: Micros) -> None:
        """Count an arrived heartbeat as contact, unless its epoch is not the registered one."""
        tracked = self._brokers.get(broker_id)
        if tracked is not None and tracked.epoch == epoch and not tracked.is_exempt:
            tracked.contact_us = now_us if tracked.contact_us is None else max(tracked.contact_us, now_us)

    def has_session(self, broker_id: NodeId, now_us: Micros, *, is_clean: bool = False) -> bool:
        """Return whether a broker was in contact within the session timeout, or may have been with the former leader:
        that time counts from the beginning of this leadership. `is_clean`: the caller states that the broker stopped
        in good order; this counts where no contact is known."""
        tracked = self._brokers[broker_id]
        if tracked.contact_us is not None and self.look_at_us < now_us:
            return True
        presumed_us = tracked.presumed_us
        if presumed_us is not None and not is_clean and not self._is_over(presumed_us, now_us):
            return True
        return self._is_in_contact(broker_id, now_us) or self._is_in_contact_after_all(broker_id, now_us)

    def next_expired(self, now_us: Micros) -> NodeId | None:
        """Return the unfenced broker that is silent longest, if its session is over; else None.

        One at a time: the caller fences it, and the next one depends on the state after that (KAFKA-13173).
        """
        self._collect_steady()
        over = [
            (tracked.contact_us, broker_id)
            for broker_id, tracked in self._brokers.items()
            if not tracked.fenced and tracked.contact_us is not None and self._is_over(tracked.contact_us, now_us)
        ]
        return next(
            (broker_id for _, broker_id in sorted(over) if not self._is_in_contact_after_all(broker_id, now_us)), None
        )

    def next_end_us(self) -> Micros | None:
        """Return when the first session of an unfenced broker ends without further contact; None if there is none."""
        self._collect_steady()
        ends = [
            tracked.contact_us + self._timeout_us + 1
            for tracked in self._brokers.values()
            if not tracked.fenced and tracked.contact_us is not None
        ]
        return min(ends, default=None)

    def _is_in_contact(self, broker_id: NodeId, now_us: Micros) -> bool:
        tracked = self._brokers.get(broker_id)
        return tracked is not None and tracked.contact_us is not None and not self._is_over(tracked.contact_us, now_us)

    def _is_in_contact_after_all(self, broker_id: NodeId, now_us: Micros) -> bool:
        """Decide whether a silent broker is really silent. The fast path may be answering its heartbeat right now, so
        disable that first, collect its contacts, then look."""
        self.forget_steady_of(broker_id)
        self._collect_steady()
        return self._is_in_contact(broker_id, now_us)

    def _is_over(self, contact_us: Micros, now_us: Micros) -> bool:
        return contact_us + self._timeout_us < now_us

    def paused(self, lost_us: Micros, now_us: Micros) -> None:
        """Extend all sessions by a pause in which no broker could be in contact: it is not the brokers' silence."""
        self._collect_steady()
        for tracked in self._brokers.values():
            if tracked.contact_us is not None:
                tracked.contact_us = min(tracked.contact_us + lost_us, now_us)
            if tracked.presumed_us is not None:
                tracked.presumed_us = min(tracked.presumed_us + lost_us, now_us)

    # --- wishes -------------------------------------------------------------------------------------------------------

    def state(self, broker_id: NodeId) -> BrokerState:
        tracked = self._brokers[broker_id]
        if tracked.shutdown_offset != NO_OFFSET:
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.FENCED if tracked.fenced else BrokerState.UNFENCED

    def is_caught_up(self, broker_id: NodeId, metadata_offset: Offset) -> bool:
        """Return whether the broker has read its own registration."""
        return metadata_offset >= self._brokers[broker_id].registered_at

    def next_state(self, request: BrokerHeartbeatRequest, leads: Callable[[NodeId], bool]) -> BrokerState:
        """Return the broker's next state by this heartbeat, without a change."""
        match self.state(request.broker_id):
            case BrokerState.FENCED:
                return self._from_fenced(request)
            case BrokerState.UNFENCED:
                return self._from_unfenced(request, leads)
            case _:
                return self._from_shutdown(request, leads)

    def set_metadata_offset(self, broker_id: NodeId, metadata_offset: Offset) -> None:
        """Note how far a broker has read the metadata, when its heartbeat is finished."""
        self._brokers[broker_id].metadata_offset = metadata_offset

    def shutting_down(self, broker_id: NodeId, last_offset: Offset) -> None:
        """Note the last of the records that move a broker's leaders away. A later call does not change it."""
        self.forget_steady_of(broker_id)
        tracked = self._brokers[broker_id]
        assert not tracked.fenced, f"broker {broker_id} is fenced"
        if tracked.shutdown_offset == NO_OFFSET:
            tracked.shutdown_offset = last_offset

    def _from_fenced(self, request: BrokerHeartbeatRequest) -> BrokerState:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        wants_in = not request.want_fence
        is_caught_up = self.is_caught_up(request.broker_id, request.current_metadata_offset)
        return BrokerState.UNFENCED if wants_in and is_caught_up else BrokerState.FENCED

    def _from_unfenced(self, request: BrokerHeartbeatRequest, leads: Callable[[NodeId], bool]) -> BrokerState:
        if request.want_fence:
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        if not request.want_shut_down:
            return BrokerState.UNFENCED
        return BrokerState.CONTROLLED_SHUTDOWN if leads(request.broker_id) else BrokerState.SHUTDOWN_NOW

    def _from_shutdown(self, request: BrokerHeartbeatRequest, leads: Callable[[NodeId], bool]) -> BrokerState:
        """Stay in shutdown until it leads nothing, and every active broker has read the new leaders."""
        broker_id = request.broker_id
        self._collect_steady()
        if leads(broker_id) or self._lowest_active_offset() < self._brokers[broker_id].shutdown_offset:
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.SHUTDOWN_NOW

    def _lowest_active_offset(self) -> Offset:
        """Return the lowest metadata offset of the brokers that are neither fenced nor shutting down, and that report
        one."""
        offsets = (
            tracked.metadata_offset
            for tracked in self._brokers.values()
            if not tracked.fenced and tracked.shutdown_offset == NO_OFFSET and not tracked.is_exempt
        )
        return min(offsets, default=1 << 62)
