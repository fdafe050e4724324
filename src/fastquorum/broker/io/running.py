"""A running member: an agent, its connections, and the thread they live in, so that heartbeats leave whatever the
program computes.

Methods may be called from any thread. Listeners are called in the member's thread and must not block.
Source: epoll(7); Kafka `NodeToControllerChannelManager`.
"""

import errno
import os
import random
import secrets
import select
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from fastquorum.broker.agent import Agent, Effect, Keep, MemberLink, MemberSend, View
from fastquorum.broker.control_server import HangUp, Reply
from fastquorum.broker.io.control_port import ControlPort
from fastquorum.broker.io.keeping import Keeping, Kept
from fastquorum.broker.lifecycle import NEVER
from fastquorum.broker.pushed_agent import PushedMetadataAgent
from fastquorum.broker.settings import MemberConfig, MemberSettings
from fastquorum.config import MS, QuorumConfig
from fastquorum.errors import ClosedError, FastQuorumError, FatalError
from fastquorum.kernels import Kernels
from fastquorum.node.io import handles
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.sockets.channel import Channel
from fastquorum.node.io.sockets.receiving import Receiver
from fastquorum.node.io.sockets.transport import SocketTransport
from fastquorum.node.lane.peer_events import PeerAnswer, PeerEvent, UnansweredRequest
from fastquorum.node.network.peers import Peers
from fastquorum.threads import start_thread
from fastquorum.types import Micros
from fastquorum.version import __version__
from fastquorum.wire import API, frames_of

SWEEP_US_MIN: Final = 10 * MS
"""Time between two looks at connections' deadlines, at least."""
HALT_S: Final = 1.0
"""How long the thread may take to end, in seconds."""
_NO_CONTROLLER: Final = "it does not know {}: name controllers, and run every node of their quorum with --controller"
_HANG_UP: Final = select.EPOLLHUP | select.EPOLLERR
_READABLE: Final = select.EPOLLIN | _HANG_UP

Command = Callable[[Micros], Iterable[Effect]]


class RunningMember(handles.Guarded):
    """The running member of one incarnation. Call `start` once, then `register` once."""

    def __init__(
        self,
        settings: MemberSettings,
        config: MemberConfig,
        kernels: Kernels,
        *,
        is_ready: bool,
        listening: socket.socket | None = None,
        keeping: Keeping | None = None,
        kept: Kept | None = None,
    ) -> None:
        """Take `listening`, the socket for control requests, if it receives any; `keeping`, which it owns from here on;
        and `kept`, the metadata that was found in there. ImageFailed."""
        super().__init__()
        self.settings = settings
        self.config = config
        limits = QuorumConfig(request_timeout_us=config.request_timeout_us)
        chance = random.Random(secrets.randbits(64))
        self._transport = SocketTransport(limits, kernels)
        self._pushed_agent: PushedMetadataAgent | None = None
        self._port: ControlPort | None = None
        if listening is not None:
            self._pushed_agent = PushedMetadataAgent(settings, config, kernels, chance, is_ready=is_ready)
            self._port = ControlPort(listening, self._transport)
        self._agent = self._pushed_agent or Agent(settings, config, kernels, chance, is_ready=is_ready)
        if kept is not None:
            self._agent.load(*kept)
        self._keeping = keeping
        self._failure: FastQuorumError | None = None
        """The failure to store the metadata, if there was one."""
        client_id = f"broker-{settings.broker_id}"
        self._peers = Peers(self._transport, self._transport.send, frames_of(kernels), limits, client_id, __version__)
        self._receiver = Receiver()
        self._sweep_at_us: Micros = 0
        shortest_us = min(limits.partial_frame_us_max, limits.request_timeout_us, limits.connection_idle_us_max)
        self._sweep_every_us = max(SWEEP_US_MIN, shortest_us // 4)
        self._commands: deque[Command] = deque()
        self._listeners: list[Callable[[], None]] = []
        self.is_ending = False
        """Whether its end was requested."""
        self._is_over = False
        self.view: View = self._agent.view
        """Replaced as a whole, never changed."""
        self.changed = threading.Condition(threading.Lock())
        """Notified when there is news in `view`."""
        self._thread = threading.Thread(target=self._run, name=f"fastquorum-broker-{settings.broker_id}", daemon=True)

    # --- from any thread ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; the member is offline, and sends no request."""
        handles.watch(self)
        start_thread(self._thread)

    def register(self) -> None:
        """Begin the lifecycle: register with the controllers."""
        self._post(self._agent.start)

    @property
    def is_over(self) -> bool:
        """Whether the thread has ended: nothing will change any more."""
        return self._is_over

    def listen(self, listener: Callable[[], None]) -> None:
        """Add a listener that is called in the member's thread when there is news."""
        self._listeners.append(listener)

    def set_ready(self, is_ready: bool) -> None:
        self._post(lambda now: self._agent.set_ready(is_ready, now))

    def request_stop(self, timeout_us: Micros) -> None:
        """Begin to go in good order; it is over by then. Idempotent."""
        self.is_ending = True
        self._post(lambda now: self._agent.stop(now + timeout_us, now))

    def join(self, timeout_s: float | None) -> bool:
        """Wait for its thread; False if that still runs after so long."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def abort(self) -> None:
        """End without notice to the controllers, as a crash would. For exits, and tests."""
        self.is_ending = True
        self._post(lambda now: self._agent.fail(ClosedError("the member was abandoned"), now))
        self._thread.join(HALT_S)

    def _post(self, command: Command) -> None:
        self._commands.append(command)
        self._transport.wake()

    # --- fork ---------------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        self._transport.before_fork()

    def after_fork(self) -> None:
        self._transport.after_fork()

    def abandon_in_child(self) -> None:
        if self._port is not None:
            self._port.close()
        self._transport.abandon_in_child()

    # --- the member's thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException as error:
            # A bug of ours: nothing is claimed any more, and everybody who waits is told before it is shown.
            self._agent.fail(FatalError(f"internal error in the member's thread: {error!r}"), now_us())
            raise
        finally:
            self._peers.close()
            if self._port is not None:
                self._port.close()
            self._transport.close_all()
            if self._keeping is not None:
                self._keeping.close()
            self._is_over = self.is_ending = True
            handles.forget(self)
            self._publish(is_news=True)

    def _loop(self) -> None:
        agent, transport = self._agent, self._transport
        while not agent.is_over:
            for fd, mask in transport.poll(self._wait_s()):
                if fd == transport.wake_fd:
                    os.eventfd_read(fd)
                elif self._port is not None and fd == self._port.fd:
                    self._accept(self._port)
                elif (channel := transport.by_fd.get(fd)) is not None:
                    self._on_channel(channel, mask)
            self._take_in()
            if NEVER != agent.deadline_us <= now_us():
                self._carry_out(agent.on_tick(now_us()))
            if self._port is not None:
                self._port.on_tick(now_us())
            if self._sweep_at_us <= now_us():
                self._sweep(now_us())
            self._publish(is_news=False)

    def _wait_s(self) -> float:
        due = (
            self._agent.deadline_us,
            NEVER if self._port is None else self._port.deadline_us,
            self._sweep_at_us if len(self._transport) else NEVER,
        )
        deadline_us = min((each for each in due if each != NEVER), default=NEVER)
        return -1 if deadline_us == NEVER else max(deadline_us - now_us(), 0) / 1_000_000

    def _sweep(self, now: Micros) -> None:
        """Close the connections that did not finish in time."""
        self._sweep_at_us = now + self._sweep_every_us
        for connection in self._transport.overdue(now):
            self._transport.errors.failed(connection, os.strerror(errno.ETIMEDOUT))
            self._lose(connection)

    def _take_in(self) -> None:
        """Take the commands of other threads."""
        transport = self._transport
        while self._commands:
            self._carry_out(self._commands.popleft()(now_us()))
        while transport.dialed:
            transport.take_over(*transport.dialed.popleft())
        while transport.lost:
            self._lose(transport.lost.popleft())

    def _accept(self, port: ControlPort) -> None:
        makes_room = port.accept(now_us())
        if makes_room is not None:
            self._lose(makes_room)

    def _on_channel(self, channel: Channel, mask: int) -> None:
        if not channel.connected:
            if self._transport.finish_connect(channel):
                self._peers.on_connected(channel.number, now_us())
            else:
                self._lose(channel.number)
            return
        if mask & select.EPOLLOUT:
            self._transport.flush(channel)
        if mask & _READABLE and not (channel.is_paused and not mask & _HANG_UP):
            self._receive(channel)

    def _receive(self, channel: Channel) -> None:
        transport, partial_bytes = self._transport, channel.partial_bytes
        frames = self._receiver.frames(channel, now_us(), transport.receive_bytes(channel))
        transport.received(channel, frames or (), partial_bytes)
        if frames is None:
            self._lose(channel.number)
            return
        channel.seen_frame = channel.seen_frame or bool(frames)
        for frame in frames:
            if channel.broken or not transport.knows(channel.number):
                return
            if self._pushed_agent is not None and channel.accepted:
                self._carry_out(self._pushed_agent.on_control(channel.number, frame, now_us()))
            elif self._peers.owns(channel.number):
                self._tell(self._peers.on_frame(channel.number, frame, now_us()))
            transport.dealt_with(channel.number, len(frame))

    def _lose(self, connection: int) -> None:
        self._transport.close(connection)
        self._tell(self._peers.on_disconnected(connection, now_us()))
        if self._pushed_agent is not None:
            self._carry_out(self._pushed_agent.forget(connection, now_us()))

    def _tell(self, events: list[PeerEvent]) -> None:
        for event in events:
            now = now_us()
            if isinstance(event, PeerAnswer):
                link = MemberLink(event.source)
                self._carry_out(self._agent.on_answer(link, event.correlation_id, event.message, now))
            elif isinstance(event, UnansweredRequest):
                link = MemberLink(event.destination)
                if event.unsupported:
                    reason = _NO_CONTROLLER.format(API[event.api_key].name)
                else:
                    reason = self._peers.last_error(event.destination) or "the connection failed"
                effects = self._agent.on_unanswered(
                    link, event.correlation_id, reason, now, unsupported=event.unsupported
                )
                self._carry_out(effects)

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, MemberSend):
                now = now_us()
                self._tell(self._peers.request(effect.link, effect.endpoint, effect.number, effect.message, now))
            elif isinstance(effect, Keep):
                if (error := self._keep()) is not None:
                    self._carry_out(self._agent.fail(error, now_us()))
                    return
            elif isinstance(effect, Reply):
                self._publish(is_news=False)  # first: what the controller hears is done, the program knows
                self._transport.send(effect.connection, effect.frame)
            elif isinstance(effect, HangUp):
                self._lose(effect.connection)
            else:
                self._publish(is_news=True)

    def _keep(self) -> FastQuorumError | None:
        """Store the metadata. A failure ends the membership, or becomes its error."""
        standing = self._agent.standing
        if self._keeping is not None and standing is not None:
            try:
                self._keeping.save(*standing)
            except FastQuorumError as error:
                self._failure = error
        return self._failure

    def _publish(self, *, is_news: bool) -> None:
        before, self.view = self.view, self._agent.view
        if self._failure is not None and self.view.error is None:
            self.view = self.view._replace(error=self._failure)
        if not is_news and not self.view.is_news_after(before):
            return
        with self.changed:
            self.changed.notify_all()
        for listener in self._listeners:
            listener()
