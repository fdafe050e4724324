"""Who is alive, as the active controller has heard: sessions, and what a heartbeat's wish comes to.

A broker that wants nothing new is answered where its heartbeat arrives (`kernels.beats`), without a turn of this; who
was heard so is asked for before anything is decided by it.

Soft state: nothing of it is in the log. It begins with the lead, when every broker is given a whole session, and ends
with it: a fenced one, too, since its last acknowledged heartbeat may have come just before it asked to be fenced, and
its answer been lost (`lease`). That session keeps nobody unfenced, but another incarnation out. A broker is heard when
its request arrives, not when its turn comes: a controller that is behind must not fence who is alive (KAFKA-15019).
Source: KIP-631; Kafka `BrokerHeartbeatManager`, `BrokerHeartbeatTracker`."""

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
    """What a broker is, or is to become."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    """Unfenced; its leaders are moving away."""
    SHUTDOWN_NOW = auto()
    """Fenced, and free to go."""

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


@dataclass(slots=True)
class _Heard:
    """One incarnation of a broker."""

    epoch: int
    fenced: bool
    registered_at: Offset
    """Offset of its registration record; if it was written before this lead, and it is fenced, never below it."""
    metadata_offset: Offset = NO_OFFSET
    """Up to where it has read the metadata, as it last said."""
    shutdown_offset: Offset = NO_OFFSET
    """Behind the records that began its controlled shutdown."""
    contact_us: Micros | None = None
    """When it was last heard; None: it has no session."""
    presumed_us: Micros | None = None
    """Of a fenced one that the former leader may have heard: when this lead began; None: nobody has to wait for it."""
    is_exempt: bool = False
    """It need not beat, and never has a session (KIP-343: a legacy registration)."""
    changed_at: Offset = NO_OFFSET
    """Offset of the last record of this lead that changed its registration."""
    incarnation_id: int = NO_OFFSET
    """The highest that a heartbeat named, if it is above the epoch (KIP-343)."""


class Heartbeats:
    """Of every registered broker. Times are those of one monotonic clock."""

    def __init__(
        self,
        brokers: Brokers,
        now_us: Micros,
        session_timeout_us: Micros,
        last_offset: Offset = NO_OFFSET,
        steady: SteadyBeats | None = None,
    ) -> None:
        """The lead begins: whoever is unfenced has a session from now on, whatever the former leader heard. Whoever is
        fenced has read its registration once it has read up to `last_offset`, the last there is: an epoch may be that
        of a record before it, or of one that was amended since. `steady`: begun for this lead."""
        self._steady = steady
        self._timeout_us = session_timeout_us
        self.look_at_us: Micros = _NEVER_US
        """When the silent are looked for next, as whoever does that sets it; once it is overdue, heartbeats may wait
        that nobody read, and whoever had a session has it until then."""
        self._brokers: dict[NodeId, _Heard] = {}
        for broker_id, broker in sorted(brokers.items()):
            heard = _Heard(broker.epoch, broker.fenced, last_offset if broker.fenced else broker.epoch)
            heard.contact_us = None if broker.fenced else now_us
            heard.presumed_us = now_us if broker.fenced else None
            self._brokers[broker_id] = heard

    # --- what the log says --------------------------------------------------------------------------------------------

    def registered(self, broker: Broker, offset: Offset) -> None:
        """Its registration record was written at this offset. Another incarnation begins anew, without a session."""
        heard = self._brokers.get(broker.id)
        if heard is None or heard.epoch != broker.epoch:
            self._brokers[broker.id] = _Heard(broker.epoch, broker.fenced, offset)
        else:
            heard.registered_at = offset
        self.changed(broker, offset)

    def changed(self, broker: Broker, offset: Offset) -> None:
        """Its registration was changed by the record at this offset. Who is fenced is no longer shutting down: it may
        go at its next heartbeat."""
        heard = self._brokers[broker.id]
        heard.fenced, heard.changed_at = broker.fenced, offset
        if broker.fenced:
            heard.shutdown_offset = NO_OFFSET

    def unregistered(self, broker_id: NodeId) -> None:
        self._brokers.pop(broker_id, None)

    def exempt(self, broker_id: NodeId) -> None:
        """This incarnation need not beat."""
        heard = self._brokers[broker_id]
        heard.is_exempt, heard.contact_us, heard.presumed_us = True, None, None

    # --- answered where they arrive -----------------------------------------------------------------------------------

    def is_steady(self, request: BrokerHeartbeatRequest, high_watermark: Offset) -> bool:
        """Its heartbeat, dealt with just now, came to nothing, and the same one will again until something about it
        changes: it is unfenced, as all may know, and wants to stay so. (Its directories are the only thing that it
        tells beside that; those that failed are looked at anew each time, those that are cordoned are in its
        registration.)"""
        heard = self._brokers[request.broker_id]
        wants_nothing = not (request.want_fence or request.want_shut_down or request.offline_log_dirs)
        is_unfenced = not heard.fenced and heard.shutdown_offset == NO_OFFSET and not heard.is_exempt
        return wants_nothing and is_unfenced and heard.changed_at < high_watermark

    def caught_up_at(self, broker_id: NodeId) -> Offset:
        """Up to where it must have read to know its registration."""
        return self._brokers[broker_id].registered_at

    def forget_steady(self) -> None:
        """What a heartbeat comes to changes, for all of them."""
        if self._steady is not None:
            self._steady.forget_all()

    def forget_steady_of(self, broker_id: NodeId) -> None:
        """What its heartbeat comes to changes: from now on it is answered by whoever decides that."""
        if self._steady is not None:
            self._steady.forget(broker_id)

    def _hear_steady(self) -> None:
        if self._steady is None:
            return
        for each in self._steady.take_answered():
            self.touch(each.broker_id, each.broker_epoch, each.contact_us)
            heard = self._brokers.get(each.broker_id)
            if heard is not None and heard.epoch == each.broker_epoch:
                heard.metadata_offset = max(heard.metadata_offset, each.metadata_offset)

    # --- incarnations -------------------------------------------------------------------------------------------------

    def incarnation_id(self, broker_id: NodeId) -> int:
        """The latest one heard of: that of the registration, or a later one that was believed. Source: KIP-343."""
        heard = self._brokers[broker_id]
        return max(heard.epoch, heard.incarnation_id)

    def believe(self, broker_id: NodeId, incarnation_id: int) -> None:
        """There is a later incarnation than the registered one. Only this controller knows, and only until another
        registration."""
        self._brokers[broker_id].incarnation_id = incarnation_id

    # --- sessions -----------------------------------------------------------------------------------------------------

    def touch(self, broker_id: NodeId, epoch: int, now_us: Micros) -> None:
        """A heartbeat has arrived. Of an epoch that does not stand it counts for nothing."""
        heard = self._brokers.get(broker_id)
        if heard is not None and heard.epoch == epoch and not heard.is_exempt:
            heard.contact_us = now_us if heard.contact_us is None else max(heard.contact_us, now_us)

    def has_session(self, broker_id: NodeId, now_us: Micros, *, is_clean: bool = False) -> bool:
        """It was heard within the session timeout, or may have been, by whoever led before: that counts from this
        lead's begin. `is_clean`: whoever asks knows that the broker ended in good order; it is taken at its word where
        nothing is known."""
        heard = self._brokers[broker_id]
        if heard.contact_us is not None and self.look_at_us < now_us:
            return True
        presumed_us = heard.presumed_us
        if presumed_us is not None and not is_clean and not self._is_over(presumed_us, now_us):
            return True
        return self._is_heard(broker_id, now_us) or self._is_heard_yet(broker_id, now_us)

    def next_expired(self, now_us: Micros) -> NodeId | None:
        """An unfenced broker whose session is over, the one silent longest; None if there is none.

        One at a time: the caller fences it, and the next is decided on what follows from that (KAFKA-13173).
        """
        self._hear_steady()
        over = [
            (heard.contact_us, broker_id)
            for broker_id, heard in self._brokers.items()
            if not heard.fenced and heard.contact_us is not None and self._is_over(heard.contact_us, now_us)
        ]
        return next((broker_id for _, broker_id in sorted(over) if not self._is_heard_yet(broker_id, now_us)), None)

    def next_end_us(self) -> Micros | None:
        """When the first session of an unfenced broker is over, unless that is heard again; None if there is none."""
        self._hear_steady()
        ends = [
            heard.contact_us + self._timeout_us + 1
            for heard in self._brokers.values()
            if not heard.fenced and heard.contact_us is not None
        ]
        return min(ends, default=None)

    def _is_heard(self, broker_id: NodeId, now_us: Micros) -> bool:
        heard = self._brokers.get(broker_id)
        return heard is not None and heard.contact_us is not None and not self._is_over(heard.contact_us, now_us)

    def _is_heard_yet(self, broker_id: NodeId, now_us: Micros) -> bool:
        """Who seems to be silent may be answered this very moment, and be told that it is unfenced: so nobody answers
        it any more but whoever decides here, and then it is silent only if it was not answered until now."""
        self.forget_steady_of(broker_id)
        self._hear_steady()
        return self._is_heard(broker_id, now_us)

    def _is_over(self, contact_us: Micros, now_us: Micros) -> bool:
        return contact_us + self._timeout_us < now_us

    def paused(self, lost_us: Micros, now_us: Micros) -> None:
        """Nobody could be heard for so long: that is not the brokers' silence."""
        self._hear_steady()
        for heard in self._brokers.values():
            if heard.contact_us is not None:
                heard.contact_us = min(heard.contact_us + lost_us, now_us)
            if heard.presumed_us is not None:
                heard.presumed_us = min(heard.presumed_us + lost_us, now_us)

    # --- wishes -------------------------------------------------------------------------------------------------------

    def state(self, broker_id: NodeId) -> BrokerState:
        heard = self._brokers[broker_id]
        if heard.shutdown_offset != NO_OFFSET:
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.FENCED if heard.fenced else BrokerState.UNFENCED

    def is_caught_up(self, broker_id: NodeId, metadata_offset: Offset) -> bool:
        """It has read its own registration."""
        return metadata_offset >= self._brokers[broker_id].registered_at

    def next_state(self, request: BrokerHeartbeatRequest, leads: Callable[[NodeId], bool]) -> BrokerState:
        """What the broker is to become by this heartbeat. Changes nothing."""
        match self.state(request.broker_id):
            case BrokerState.FENCED:
                return self._from_fenced(request)
            case BrokerState.UNFENCED:
                return self._from_unfenced(request, leads)
            case _:
                return self._from_shutdown(request, leads)

    def heard(self, broker_id: NodeId, metadata_offset: Offset) -> None:
        """Its heartbeat was dealt with."""
        self._brokers[broker_id].metadata_offset = metadata_offset

    def shutting_down(self, broker_id: NodeId, last_offset: Offset) -> None:
        """The last of the records that move its leaders away. Later ones do not move that."""
        self.forget_steady_of(broker_id)
        heard = self._brokers[broker_id]
        assert not heard.fenced, f"broker {broker_id} is fenced"
        if heard.shutdown_offset == NO_OFFSET:
            heard.shutdown_offset = last_offset

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
        """Until it leads nothing, and every active broker has read who leads instead."""
        broker_id = request.broker_id
        self._hear_steady()
        if leads(broker_id) or self._lowest_active_offset() < self._brokers[broker_id].shutdown_offset:
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.SHUTDOWN_NOW

    def _lowest_active_offset(self) -> Offset:
        """Of the brokers that are neither fenced nor shutting down, and say how far they have read."""
        offsets = (
            heard.metadata_offset
            for heard in self._brokers.values()
            if not heard.fenced and heard.shutdown_offset == NO_OFFSET and not heard.is_exempt
        )
        return min(offsets, default=1 << 62)
