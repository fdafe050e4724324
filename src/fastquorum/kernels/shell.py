"""The native shell and how it is loaded. There is no pure twin: `node.lane.python_shell` is the shell
of the pure lane, and the simulator's.
"""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fastquorum.kernels.native._beats import SteadyBeats as SteadyBeats
    from fastquorum.kernels.native._produce import ProduceApi as ProduceApi
    from fastquorum.kernels.native._shell import Shell as Shell
    from fastquorum.kernels.native._waiters import Mailbox as Mailbox
    from fastquorum.kernels.native._waiters import Slot as Slot


class NativeShellClasses(NamedTuple):
    """The native shell and what it is used with, as they are loaded: explicitly, and loudly if they are missing."""

    Shell: "type[Shell]"
    Mailbox: "type[Mailbox]"
    Slot: "type[Slot]"
    ProduceApi: "type[ProduceApi]"
    arm_failpoint: Callable[[str, str, int, int], bool]


def load_shell() -> NativeShellClasses:
    """Raises ImportError where the native modules are missing."""
    shell, waiters, produce = (
        importlib.import_module(f"fastquorum.kernels.native.{name}") for name in ("_shell", "_waiters", "_produce")
    )
    return NativeShellClasses(shell.Shell, waiters.Mailbox, waiters.Slot, produce.ProduceApi, shell.arm_failpoint)
