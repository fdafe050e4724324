"""What the native shell and its driver say to each other. There is no pure twin: `node.lane.python_shell` is the shell
of the pure lane, and the simulator's.
"""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from fastquorum.kernels.native._beats import SteadyBeats as SteadyBeats
    from fastquorum.kernels.native._produce import ProduceDoor as ProduceDoor
    from fastquorum.kernels.native._shell import Shell as Shell
    from fastquorum.kernels.native._waiters import Mailbox as Mailbox
    from fastquorum.kernels.native._waiters import Slot as Slot

ACTIONS: Final = ("off", "crash", "eio", "sleep", "yield")
"""What a failpoint may do, by the native numbers. `yield`: dawdle by chance, to see other schedules."""

# Verdicts on an append or a barrier, beside `kernels.lane.AppendVerdict`.
TOO_LARGE: Final = -4
CUT_OFF: Final = -5
RECORDS_OVERLOADED: Final = -6
BYTES_OVERLOADED: Final = -7
STOPPED: Final = -8
PRODUCERS_BEHIND: Final = -9
"""What is known of producers does not reach the log's end."""
NOT_NEXT: Final = -10
"""Neither its producer's next batch nor one of the last: `Producers.check` has the words."""

# Kinds of events.
EVENT_FRAME: Final = 0
EVENT_CONNECTED: Final = 1
EVENT_LOST: Final = 2
EVENT_SYNCED: Final = 3
EVENT_DRAINED: Final = 4


class NativeShell(NamedTuple):
    """The native shell and what it is used with, as they are loaded: explicitly, and loudly if they are missing."""

    Shell: "type[Shell]"
    Mailbox: "type[Mailbox]"
    Slot: "type[Slot]"
    ProduceDoor: "type[ProduceDoor]"
    arm_failpoint: Callable[[str, str, int, int], bool]


def load_shell() -> NativeShell:
    """Raises ImportError where the native modules are missing."""
    shell, waiters, produce = (
        importlib.import_module(f"fastquorum.kernels.native.{name}") for name in ("_shell", "_waiters", "_produce")
    )
    return NativeShell(shell.Shell, waiters.Mailbox, waiters.Slot, produce.ProduceDoor, shell.arm_failpoint)
