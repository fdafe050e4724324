"""What a node runs on: the native shell with its own threads, or everything in the replica's thread, for pure kernels.

Both make the same things: a transport, a shell and a loop. The directory is opened in between, as its flush port is
made before and its log is needed after.
"""

import socket
from collections.abc import Callable
from typing import Protocol

from fastquorum.config import QuorumConfig
from fastquorum.errnos import reason
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import load_lane
from fastquorum.kernels.shell import load_shell
from fastquorum.node.assembly import Member, Ports, lane_identity, lane_shell
from fastquorum.node.io.callers.gate import Gate
from fastquorum.node.io.callers.port import LoopBridge
from fastquorum.node.io.callers.tickets import LoopCallers, ThreadCallers
from fastquorum.node.io.directory import OpenDirectory
from fastquorum.node.io.failpoints import failpoint
from fastquorum.node.io.injected import InjectedNativeTransport, InjectedTransport, inner_file
from fastquorum.node.io.measured_shell import MeasuredLaneShell
from fastquorum.node.io.native.flusher import NativeFlusher
from fastquorum.node.io.native.shell import NativeShell
from fastquorum.node.io.native.transport import NativeTransport
from fastquorum.node.io.native.waiters import NativeLoopCallers, NativeThreadCallers
from fastquorum.node.io.native_reactor import NativeReactor
from fastquorum.node.io.reactor import Reactor
from fastquorum.node.io.socket_reactor import SocketReactor
from fastquorum.node.io.sockets.transport import SocketTransport
from fastquorum.node.io.watched import WatchedFlusher
from fastquorum.node.lane.port import MeasuredShell
from fastquorum.node.ports import LaneLock
from fastquorum.storage.log.log import Log
from fastquorum.threads import too_few_threads

OnEnd = Callable[[FastQuorumError | None], None]


class Machine(Protocol):
    """Made for one node. `equip` comes first, once its directory is open."""

    @property
    def native_flusher(self) -> NativeFlusher | None: ...
    def equip(self, member: Member, config: QuorumConfig, kernels: Kernels, opened: OpenDirectory) -> None: ...
    @property
    def transport(self) -> SocketTransport | NativeTransport: ...
    def make_shell(self, member: Member, log: Log, ports: Ports) -> MeasuredShell: ...
    def make_reactor(self, lock: LaneLock, listening: socket.socket, name: str, on_end: OnEnd) -> Reactor: ...
    def thread_callers(self, gate: Gate) -> ThreadCallers: ...
    def loop_callers(self, gate: Gate, bridge: LoopBridge) -> LoopCallers: ...


def machine_for(kernels: Kernels) -> Machine:
    """Chosen by the kernel set, as everything of its kind is."""
    return NativeMachine() if kernels.NAME == "native" else PureMachine()


class PureMachine:
    """Everything in the replica's thread, but for the syncs."""

    native_flusher = None

    def equip(self, member: Member, config: QuorumConfig, kernels: Kernels, opened: OpenDirectory) -> None:
        assert isinstance(opened.flusher, WatchedFlusher)
        self._config = config
        self._kernels = kernels
        self._flusher = opened.flusher
        self.transport = (InjectedTransport if failpoint.are_armed else SocketTransport)(config, kernels)

    def make_shell(self, member: Member, log: Log, ports: Ports) -> MeasuredShell:
        shell = lane_shell(member, self._config, self._kernels, load_lane("pure"), log, ports, MeasuredLaneShell)
        assert isinstance(shell, MeasuredLaneShell)
        self._shell = shell
        return shell

    def thread_callers(self, gate: Gate) -> ThreadCallers:
        return ThreadCallers(self._shell, gate)

    def loop_callers(self, gate: Gate, bridge: LoopBridge) -> LoopCallers:
        return LoopCallers(self._shell, gate, bridge)

    def make_reactor(self, lock: LaneLock, listening: socket.socket, name: str, on_end: OnEnd) -> Reactor:
        return SocketReactor(
            config=self._config,
            transport=self.transport,
            flusher=self._flusher,
            lock=lock,
            listening=listening,
            name=name,
            on_end=on_end,
        )


class NativeMachine:
    """The steady state in native threads; the replica's thread has what is unusual."""

    def __init__(self) -> None:
        self.native_flusher = NativeFlusher()

    def equip(self, member: Member, config: QuorumConfig, kernels: Kernels, opened: OpenDirectory) -> None:
        native = load_shell()
        self._config = config
        self._kernels = kernels
        try:
            self._mailbox = native.Mailbox()
            self._shell = native.Shell(
                lane_identity(member),
                config.batch_bytes_max,
                frame_bytes_max=config.frame_bytes_max,
                records_max=config.append_queue_records_max,
                bytes_max=config.append_queue_bytes_max,
                busy_poll_us=config.busy_poll_us,
                alone_us_max=config.disk_stall_us_max,
            )
        except OSError as error:
            raise too_few_threads("the node's native threads", reason(error)) from error
        failpoint.arm_native(native.arm_failpoint)
        self.native_flusher.bind(self._shell, inner_file)
        self.transport = (InjectedNativeTransport if failpoint.are_armed else NativeTransport)(config, self._shell)

    def make_shell(self, member: Member, log: Log, ports: Ports) -> NativeShell:
        self._driver = NativeShell(
            config=self._config,
            kernels=self._kernels,
            log=log,
            lock=ports.lock,
            shell=self._shell,
            mailbox=self._mailbox,
            unwrapped=inner_file,
        )
        return self._driver

    def thread_callers(self, gate: Gate) -> ThreadCallers:
        return NativeThreadCallers(self._driver, self._shell, gate)

    def loop_callers(self, gate: Gate, bridge: LoopBridge) -> LoopCallers:
        return NativeLoopCallers(self._driver, self._shell, load_shell().Mailbox(), gate, bridge)

    def make_reactor(self, lock: LaneLock, listening: socket.socket, name: str, on_end: OnEnd) -> Reactor:
        reactor = NativeReactor(
            config=self._config,
            transport=self.transport,
            flusher=self.native_flusher,
            lock=lock,
            listening=listening,
            name=name,
            on_end=on_end,
        )
        reactor.attach(self._shell, self._mailbox)
        return reactor
