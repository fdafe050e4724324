"""Frames and ends of syncs that reach one life of a simulated process, and the thread that takes each."""

from fastquorum.raft import events as ev
from fastquorum.sim.invariants import timers
from fastquorum.sim.network import Packet
from fastquorum.sim.node.threads import LaneThread, ReplicaThread
from fastquorum.sim.node.transport import SimTransport
from fastquorum.sim.node.view import ProcessView, Watcher
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest


class ProcessArrivals:
    """The arrivals of one life. The lane's own thread takes the lane's frames while the replica's thread is busy."""

    def __init__(
        self,
        process: ProcessView,
        watcher: Watcher,
        transport: SimTransport,
        threads: tuple[ReplicaThread, LaneThread],
    ) -> None:
        self._process = process
        self._watcher = watcher
        self._transport = transport
        self._thread, self._lane_thread = threads
        self._incarnation = process.incarnation
        self._waiting: dict[int, int] = {}
        """The number of frames on each connection that the replica has not seen."""

    def arrived(self, number: int, packet: Packet, *, early: bool = False) -> None:
        """Take a frame. `early`: before its time, while the replica's thread is in a turn."""
        process, thread = self._process, self._lane_thread
        self._transport.arrived(number, packet)
        timers.note_arrival(process, number, packet)
        is_heartbeat = isinstance(packet.message, BrokerHeartbeatRequest)
        if isinstance(packet.message, BrokerHeartbeatRequest):
            self._watcher.got_heartbeat(process, packet.message)
        in_lane = thread.is_alone or (early and thread.is_there)
        if in_lane and thread.is_going and number in process.lane.served:
            thread.run(lambda: self._to_lane(number, packet, early=early))
        elif in_lane and thread.is_going and is_heartbeat:
            thread.run(lambda: self._answer_beat(number, packet))
        else:
            self._to_replica(number, packet, early=early)

    def _to_lane(self, number: int, packet: Packet, *, early: bool) -> None:
        """Give a frame to the lane, on its own thread with the lock held. Frames without room go to the replica."""
        process = self._process
        if process.shell.make_room_for_frame(packet.frame):
            process.shell.perform(process.lane.on_frame(number, packet.frame, process.now_us))
        else:
            self._to_replica(number, packet, early=early)

    def _answer_beat(self, number: int, packet: Packet) -> None:
        """Answer a heartbeat on the lane's own thread with the lock held; the replica does if an earlier answer is
        due."""
        process = self._process
        is_pythons = self._waiting.get(number, 0) > 0 or process.replica.connections.owes(number)
        if is_pythons or not process.shell.answer_beat(number, packet.frame, process.now_us):
            self._to_replica(number, packet, early=False)

    def _to_replica(self, number: int, packet: Packet, *, early: bool) -> None:
        self._waiting[number] = self._waiting.get(number, 0) + 1

        def take() -> None:
            self._waiting[number] -= 1
            self._process.replica.on_frame(number, packet.frame, self._process.now_us)

        if early:
            self._thread.post_later(take)
        else:
            self._thread.post(take)

    def flushed(self, token: int, code: int) -> None:
        """Take the end of a sync."""
        process = self._process
        if self._incarnation != process.incarnation or not process.is_running:
            return
        if not self._lane_thread.is_alone or code:
            self._thread.post(lambda: self._on_flush(token, code))
            return
        if not process.replica.stopped:
            had_stalled = process.flusher.take_report()
            self._lane_thread.run(lambda: process.replica.shell.on_flush(token, code, process.now_us))
            if had_stalled:
                self._thread.post(lambda: process.replica.request(ev.DiskRecovered(), process.now_us))

    def _on_flush(self, token: int, code: int) -> None:
        process = self._process
        had_stalled = process.flusher.take_report()
        process.replica.on_flush(token, code, process.now_us)
        if had_stalled:
            process.replica.request(ev.DiskRecovered(), process.now_us)
