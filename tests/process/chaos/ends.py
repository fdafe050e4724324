"""How processes ended, and what they left on stderr: a node that crashes and is started again loses nothing, and yet
must not crash.

Must not start or end any process.
"""

import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fastquorum.errors import FatalError
from tests.process.processes import NodeProcess

NO_MEMORY: Final = "no memory"
POWER_LOSS: Final = "power loss"
EXCUSED: Final[Mapping[str, frozenset[int]]] = {
    NO_MEMORY: frozenset({FatalError.exit_code}),
    POWER_LOSS: frozenset({FatalError.exit_code}),  # its disk fails before its process is killed
}
"""Exit codes with which a node may end by itself under a fault of its own."""
EXCUSED_S: Final = 15.0
"""So long after a fault began an end may come of it: a fault lasts 2.5 s, and a process of a busy machine takes a while
to end."""
CRASHES: Final = (
    "terminate called",
    "Traceback (most recent call last)",
    "Fatal Python error",
    "Exception ignored in",
    "Sanitizer:",
    "runtime error:",
    "Assertion `",
)
"""What no node writes to stderr, whatever is done to it: C++'s last words, Python's, a sanitizer's, an assertion's."""
LAST_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault of a node's own began."""

    node_id: int
    fault: str
    at_s: float


@dataclass(frozen=True, slots=True)
class End:
    """The end of one process; `code` None: it still runs. Times are of the monotonic clock."""

    node_id: int
    code: int | None
    at_s: float
    signals: frozenset[int]
    """Sent by the test while it ran."""
    had_opened: bool
    """Before, SIGTERM simply ends it."""
    stderr: str


def end_of(process: NodeProcess) -> End:
    return End(
        process.node_id,
        process.code,
        process.over_s,
        frozenset(process.signals),
        bool(process.reported("opened")),
        process.own_stderr,
    )


def problems(ends: Iterable[End], struck: Sequence[Struck]) -> list[str]:
    """Ends that neither the test nor a fault explains, and crashes that stderr tells of, each with its last lines."""
    found: list[str] = []
    for end in ends:
        wrong = [f"wrote {each!r} to stderr" for each in CRASHES if each in end.stderr]
        if end.code is not None and end.code not in _expected(end, struck):
            wrong.insert(0, f"ended by itself: {_as_text(end.code)}")
        if wrong:
            last = "\n".join(end.stderr.splitlines()[-LAST_LINES:]) or "(nothing on stderr)"
            found.append(
                f"node {end.node_id} {' and '.join(wrong)}; {_faults_of(end, struck)}; its last lines:\n{last}"
            )
    return found


def _expected(end: End, struck: Sequence[Struck]) -> set[int]:
    expected = {code for each in _recent(end, struck) for code in EXCUSED.get(each.fault, ())}
    if signal.SIGKILL in end.signals:
        expected.add(-signal.SIGKILL)
    if signal.SIGTERM in end.signals:
        expected.add(0 if end.had_opened else -signal.SIGTERM)
    return expected


def _recent(end: End, struck: Sequence[Struck]) -> list[Struck]:
    return [each for each in struck if each.node_id == end.node_id and 0 <= end.at_s - each.at_s <= EXCUSED_S]


def _faults_of(end: End, struck: Sequence[Struck]) -> str:
    names = [each.fault for each in _recent(end, struck)]
    return f"faults of its own shortly before: {', '.join(names) or 'none'}"


def _as_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
