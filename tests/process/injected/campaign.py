"""What the system may refuse a node, on both kernels: while it runs alone, as leader and as follower, each system call
that it makes, with each error that it can be answered; while it starts, recovers and stops, each call on each file.

python -m tests.process.campaign injected [--jobs N] [--only TEXT]

A case is named as in alone/native/fsync=EIO@1+, or killed/pure/read=EIO@1 of durable-mark.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Final, get_args

from tests.process.injected.injection import Fault
from tests.process.injected.running import Case, Outcome, Place, strike
from tests.process.injected.starting import STATES, Start, refuse

Strike = Callable[[Path], Outcome]
_DISK: Final[Mapping[str, tuple[str, ...]]] = {
    "openat": ("EMFILE", "ENFILE", "ENOSPC", "ENOMEM", "EIO"),
    "pwrite64": ("ENOSPC", "EIO"),
    "writev": ("ENOSPC", "EIO"),  # LMDB's: the vote
    "fdatasync": ("EIO", "ENOSPC"),
    "fsync": ("EIO", "ENOSPC"),  # the mark's, and of directories
    "rename": ("EIO", "ENOSPC", "ENOMEM"),
    "ftruncate": ("EIO", "ENOSPC"),
}
_PROCESS: Final[Mapping[str, tuple[str, ...]]] = {
    "accept4": ("EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"),
    "socket": ("EMFILE", "ENOMEM", "ENOBUFS"),
    "connect": ("ENOBUFS",),
    "setsockopt": ("ENOBUFS",),
    "getsockname": ("ENOBUFS",),
    "epoll_ctl": ("ENOMEM", "ENOSPC"),
    "recvfrom": ("ENOMEM",),
    "mmap": ("ENOMEM",),
    "mprotect": ("ENOMEM",),
    "clone3": ("EAGAIN",),
}
_SENDS: Final = {"native": "sendmsg", "pure": "sendto"}
_WHEN: Final = ("1+", "1", "2", "5")
_ADDS_ONLY: Final = ("pure", "epoll_ctl")
"""The kernel needs no room to change what is watched, which strace cannot tell from watching one more: see
`node/io/test_transport.py`."""


def cases() -> Iterator[Case]:
    """All of them."""
    for kernels in ("native", "pure"):
        for place in get_args(Place):
            calls = {**_DISK, **({} if place == "alone" else {**_PROCESS, _SENDS[kernels]: ("ENOBUFS", "ENOMEM")})}
            for call, errors in calls.items():
                if (kernels, call) != _ADDS_ONLY:
                    yield from (Case(place, Fault(call, error, when), kernels) for error in errors for when in _WHEN)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time: they wait more than they work")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="cases whose names contain it")


def run(arguments: argparse.Namespace) -> int:
    wanted = arguments.only or [""]
    with tempfile.TemporaryDirectory(prefix="fastquorum-injected-") as directory:
        root = Path(directory)
        strikes = {str(case): partial(strike, case) for case in cases()} | _starts(root, wanted)
        chosen = [name for name in strikes if any(text in name for text in wanted)]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            places = [root / str(number) for number in range(len(chosen))]
            held = list(pool.map(_holds, chosen, [strikes[name] for name in chosen], places))
    failed = [name for name, is_held in zip(chosen, held, strict=True) if not is_held]
    print(f"{len(failed)} of {len(chosen)} failed: {', '.join(failed)}" if failed else f"all {len(chosen)} held")
    return 1 if failed else 0


def _starts(root: Path, wanted: Sequence[str]) -> dict[str, Strike]:
    """Every refusal of a start, by name, of each directory in turn, as of one a single copy runs at a time. None is
    looked for if places are named where nodes run."""
    places = get_args(Place)
    if all(text.partition("/")[0] in places for text in wanted):
        return {}
    found: list[list[tuple[str, Strike]]] = []
    for kernels in ("native", "pure"):
        for state, prepare in STATES.items():
            place = root / f"{state}-{kernels}"
            start = Start(place, kernels)
            prepare(start)
            refusals = start.refusals(place.with_suffix(".look"))
            found.append([(f"{state}/{kernels}/{each}", partial(refuse, start, each)) for each in refusals])
    return dict(each for row in zip_longest(*found) for each in row if each is not None)


def _holds(name: str, strike_at: Strike, place: Path) -> bool:
    began = time.monotonic()
    try:
        outcome = strike_at(place)
    except AssertionError as error:
        print(f"FAILED {name}: {error}", flush=True)
        return False
    finally:
        shutil.rmtree(place, ignore_errors=True)
    what = "".join(f"\n  {each}" for each in outcome.problems)
    took_s = time.monotonic() - began
    line = f"{name}: met {outcome.met} times, {outcome.end} ({took_s:.0f} s)"
    print(f"FAILED {line}{what}" if what else line, flush=True)
    return not what
