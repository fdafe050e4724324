"""The processes of a load run, and which of them leads.

With the embedded driver all three nodes are workers that could generate, and the one that leads does. With a driver
that speaks over sockets the nodes only serve, and a worker without a node generates. A quorum that it did not start
has that last worker only.
"""

import os
import queue
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Self

from fastquorum.closing import end_all
from fastquorum.errors import ConfigError, FastQuorumError, NotReady, UsageError
from fastquorum.load.observing import Observed, observed_of
from fastquorum.load.plan import LoadPlan
from fastquorum.load.processes import Message, WorkerProcess
from fastquorum.load.worker import WorkerOptions
from fastquorum.loopback import HOST, free_ports
from fastquorum.types import Endpoint, Uuid

NODES: Final = 3
OPEN_S: Final = 60.0
ELECTION_S: Final = 30.0
ATTEMPTS_MAX: Final = 5


class ObservedElection(NamedTuple):
    """When a new leader first became known, and the leader before it: -1 is none."""

    at_ns: int
    epoch: int
    leader_id: int


@dataclass(eq=False)
class WorkerFailed(FastQuorumError):
    """A process of the run failed or ended, and the run with it."""

    detail: str
    template: ClassVar[str] = "{detail}"


class PortTaken(ConfigError):
    """Another process took a port that was free a moment ago."""


class Stage:
    """Processes that are up. A context manager: they end with it."""

    def __init__(self, root: str, tracer_pid: int = 0) -> None:
        self.root = root
        """Where the nodes' directories and everybody's stderr are."""
        self._tracer_pid = tracer_pid
        self.nodes: list[WorkerProcess] = []
        self.elections: list[ObservedElection] = []
        self._generator: WorkerProcess | None = None
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._leader: WorkerProcess | None = None
        self._epoch = -1

    @property
    def is_embedded(self) -> bool:
        return self._generator is None

    @property
    def workers(self) -> list[WorkerProcess]:
        return self.nodes + ([self._generator] if self._generator is not None else [])

    @property
    def leader(self) -> WorkerProcess | None:
        """The leader among our nodes; None while none is known to lead."""
        return self._leader

    def generating(self) -> WorkerProcess | None:
        """Return the worker that generates the load now; None while there is no leader."""
        return self._generator or self._leader

    def next(self, timeout_s: float) -> Message | None:
        """Return the next message, and record elections. WorkerFailed if a worker ends that was not killed."""
        try:
            message = self._messages.get(timeout=max(timeout_s, 0))
        except queue.Empty:
            return None
        fields = message.fields
        match message.word:
            case "leadership":
                self._note(message)
            case "failed":
                raise _failure(message)
            case "gone" if not message.worker.was_killed:
                who = f"node {message.worker.node_id}" if message.worker.node_id >= 0 else "the generator"
                raise WorkerFailed(f"{who} {ended(fields['code'], message.worker.last_words())}")
        return message

    def kill_leader(self) -> WorkerProcess | None:
        """SIGKILL the process of the node that leads; None if none of ours is known to."""
        leader, self._leader = self._leader, None
        if leader is not None:
            leader.kill()
        return leader

    def await_leader(self) -> None:
        """Wait until a node of ours leads. NotReady."""
        deadline = time.monotonic() + ELECTION_S
        while self._leader is None and self.nodes:
            if time.monotonic() > deadline:
                raise NotReady(f"no leader was elected within {ELECTION_S:g} s")
            self.next(deadline - time.monotonic())

    def prepare(self, *, all_nodes: bool) -> None:
        """Have the generating worker make its payloads; with `all_nodes` every one that may generate later, too."""
        generating = self.generating()
        chosen = self.nodes if all_nodes or generating is None else [generating]
        workers = {worker for worker in chosen if not worker.was_killed}
        for worker in workers:
            worker.tell("prepare")
        deadline = time.monotonic() + OPEN_S
        while workers:
            message = self.next(deadline - time.monotonic())
            if message is None:
                raise WorkerFailed(f"the generator does not become ready within {OPEN_S:g} s")
            if message.word == "prepared":
                workers.discard(message.worker)

    # --- looking at the nodes ---------------------------------------------------------------------------------------

    def observe(self, trace_capacity: int = 0) -> None:
        """Have every node that is alive count how long its stages take from now on; with a capacity, record them."""
        self._ask("observe", "observing", lambda node: {"trace_capacity": trace_capacity})

    def observed(self) -> dict[int, Observed]:
        """Return what the live nodes have observed since `observe`, by node id."""
        responses = self._ask("tell", "observed", lambda node: {"trace_path": f"{self.root}/trace-{node.node_id}.json"})
        return {worker.node_id: observed_of(fields) for worker, fields in responses.items()}

    def _ask(
        self, do: str, answer: str, fields: Callable[[WorkerProcess], dict[str, Any]]
    ) -> dict[WorkerProcess, dict[str, Any]]:
        """Send a command to every live node, and wait for the responses."""
        nodes = [node for node in self.nodes if not node.was_killed]
        for node in nodes:
            node.tell(do, **fields(node))
        responses: dict[WorkerProcess, dict[str, Any]] = {}
        deadline = time.monotonic() + OPEN_S
        while any(node not in responses and not node.was_killed for node in nodes):
            message = self.next(deadline - time.monotonic())
            if message is None:
                raise WorkerFailed(f"a node does not answer within {OPEN_S:g} s: it was told to {do}")
            if message.word == answer:
                responses[message.worker] = message.fields
        return responses

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_all([*(worker.begin_close for worker in self.workers), *(worker.close for worker in self.workers)])

    def _note(self, message: Message) -> None:
        fields = message.fields
        epoch, leader_id = fields["epoch"], fields["leader_id"]
        if epoch > self._epoch and leader_id >= 0:
            self._epoch = epoch
            self.elections.append(ObservedElection(fields["at_ns"], epoch, leader_id))
            self._leader = None
        if epoch == self._epoch and leader_id >= 0:
            led_by = [node for node in self.nodes if node.node_id == leader_id and not node.was_killed]
            # An embedded leader takes appends only once it says itself that it leads.
            if led_by and (fields["is_self"] or not self.is_embedded):
                self._leader = led_by[0]

    # --- starting -----------------------------------------------------------------------------------------------------

    def start_node(self, node_id: int, plan: LoadPlan, node: dict[str, Any], kernels: str) -> None:
        options = WorkerOptions(
            plan=plan.as_json(), node=node, bootstrap=None, kernels=kernels, tracer_pid=self._tracer_pid
        )
        self.nodes.append(WorkerProcess(node_id, options, f"{self.root}/node-{node_id}.stderr", self._messages))

    def start_generator(self, plan: LoadPlan, bootstrap: Sequence[Endpoint], kernels: str) -> None:
        addresses = [(each.host, each.port) for each in bootstrap]
        options = WorkerOptions(plan=plan.as_json(), node=None, bootstrap=addresses, kernels=kernels, tracer_pid=0)
        self._generator = WorkerProcess(-1, options, f"{self.root}/generator.stderr", self._messages)

    def await_opened(self, count: int) -> None:
        """Wait until so many workers say that they are open."""
        deadline = time.monotonic() + OPEN_S
        while count:
            message = self.next(deadline - time.monotonic())
            if message is None:
                raise WorkerFailed(f"the nodes do not start within {OPEN_S:g} s: see the .stderr files in {self.root}")
            count -= message.word == "opened"


def local_stage(plan: LoadPlan, root: str, kernels: str, config_file: str | None, tracer_pid: int = 0) -> Stage:
    """Start three nodes on this machine, below `root`, and the worker that drives them; wait for a leader.
    `tracer_pid`: see `worker.WorkerOptions`."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            return _local_stage(plan, os.path.join(root, f"quorum-{attempt}"), kernels, config_file, tracer_pid)
        except PortTaken:
            if attempt == ATTEMPTS_MAX:
                raise
    raise AssertionError


def _local_stage(plan: LoadPlan, root: str, kernels: str, config_file: str | None, tracer_pid: int) -> Stage:
    os.makedirs(root)
    ports = free_ports(NODES)
    voters = ",".join(f"{node_id}@{HOST}:{port}" for node_id, port in enumerate(ports, 1))
    stage = Stage(root, tracer_pid)
    try:
        # They are made, whatever the file says of a directory of its own.
        shared = {"voters": voters, "cluster_id": str(Uuid(uuid.uuid4().bytes)), "kernels": kernels, "create": "true"}
        if config_file is not None:
            shared["config_file"] = config_file
        for node_id in range(1, NODES + 1):
            node = {"path": os.path.join(root, f"node-{node_id}"), "node_id": node_id, **shared}
            stage.start_node(node_id, plan, node, kernels)
        stage.await_opened(NODES)
        if plan.driver != "embedded":
            stage.start_generator(plan, [Endpoint("", HOST, port) for port in ports], kernels)
            stage.await_opened(1)
        stage.await_leader()
    except BaseException:
        stage.__exit__()
        raise
    return stage


def remote_stage(plan: LoadPlan, root: str, bootstrap: Sequence[Endpoint], kernels: str) -> Stage:
    """A generator in front of a quorum that it did not start."""
    os.makedirs(root, exist_ok=True)
    stage = Stage(root)
    try:
        stage.start_generator(plan, bootstrap, kernels)
        stage.await_opened(1)
    except BaseException:
        stage.__exit__()
        raise
    return stage


def ended(code: int, last_words: str) -> str:
    """How a process ended, in words: Popen's return code, and what it wrote to stderr."""
    try:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    except ValueError:
        how = f"was ended by signal {-code}"
    return f"{how}: {last_words}" if last_words else how


def _failure(message: Message) -> Exception:
    kind, text = message.fields["kind"], message.fields["error"]
    who = f"node {message.worker.node_id}" if message.worker.node_id >= 0 else "the generator"
    match kind:
        case "ConfigError" if "address" in text or "listen" in text:
            return PortTaken(f"{who}: {text}")
        case "NotReady":
            return NotReady(text.removeprefix(NotReady("").args[0]))
        case "UsageError" | "ConfigError" | "DirectoryError" | "RecordTooLarge":
            return UsageError(f"{who}: {text}")
    return WorkerFailed(f"{who}: {text}")
