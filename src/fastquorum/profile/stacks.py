"""Stacks and how much time was found in them: what py-spy and perf say, put together, in seconds."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

Stack = tuple[str, ...]
"""Frames from the outermost to the innermost."""
Stacks = Mapping[Stack, float]
"""Seconds found in each."""

_THREAD: Final = re.compile(r'^thread \([^)]*\)(?:: "?(?P<name>[^"]*)"?)?$')
_PERF_HEAD: Final = re.compile(r"^(?P<comm>\S.*?)\s+(?P<tid>\d+)\s*$")
_PERF_FRAME: Final = re.compile(r"^\s+[0-9a-f]+\s+(?P<symbol>.*?)\s+\((?P<object>[^()]*)\)$")
_ADDRESS: Final = re.compile(r"^(0x[0-9a-f]+|\[unknown\]) ")
_EXTENSION: Final = re.compile(r"\.(cpython-\w+-[\w-]+|abi3)(?=\.so\b)")
UNKNOWN: Final = "stacks not known"
_WAITS: Final = frozenset(
    [
        "accept4",
        "clock_nanosleep",
        "epoll_pwait",
        "epoll_wait",
        "fdatasync",
        "fsync",
        "futex_wait",
        "nanosleep",
        "poll",
        "ppoll",
        "pselect",
        "read",
        "recv",
        "recvfrom",
        "select",
        "sem_clockwait",
        "sem_timedwait",
        "sem_wait",
        "syscall",
        "wait4",
        "waitid",
        "pthread_cond_clockwait",
        "pthread_cond_timedwait",
        "pthread_cond_wait",
        "__futex_abstimed_wait_common",
        "__futex_abstimed_wait_common64",
        "__lll_lock_wait",
        "do_futex_wait",
    ]
)
_LOCKS: Final = frozenset(
    [
        "PyEval_AcquireThread",
        "PyEval_RestoreThread",
        "PyGILState_Ensure",
        "PyMutex_LockTimed",
        "PyThread_acquire_lock_timed",
        "_PyParkingLot_Park",
        "acquire_timed",
        "lock_PyThread_acquire_lock",
        "pthread_mutex_lock",
        "take_gil",
    ]
)
_PYTHON_LOCK: Final = re.compile(r"(Condition|Event|Thread|SimpleQueue|Queue|Lock)\.(wait|join|get|acquire)$|wait$")
_NAMELESS: Final = "[no symbol] "
_ARGUMENTS: Final = re.compile(r"\([^()]*\)( const)?")
_FRAMES_MAX: Final = 128


def of_py_spy(text: str, rate: float) -> Stacks:
    """`--format raw`: a stack, frames split by ";", and how many of `rate` samples a second saw it."""
    found: defaultdict[Stack, float] = defaultdict(float)
    for line in text.splitlines():
        frames, _, count = line.rpartition(" ")
        if frames and count.isdecimal():
            found[tuple(_py_spy_frames(frames.split(";")))] += int(count) / rate
    return dict(found)


def _py_spy_frames(frames: list[str]) -> Iterator[str]:
    match = _THREAD.match(frames[0])
    yield (match["name"] or "a thread") if match else frames[0]
    yield from _tidied(frames[1:])


def _tidied(frames: Iterable[str]) -> Iterator[str]:
    """Native frames by their file's own name. One without a symbol is not told from the next: addresses say nothing."""
    last = ""
    for frame in frames:
        if frame.endswith(")") and ".so" in frame:
            symbol, _, where = frame.rpartition(" (")
            frame = f"{symbol} ({_EXTENSION.sub('', where.rsplit('/', 1)[-1])}"
        frame = _ADDRESS.sub(_NAMELESS, frame)
        if frame != last or not frame.startswith(_NAMELESS):
            yield frame
        last = frame


def of_perf(text: str, rate: float) -> Stacks:
    """`perf script -F comm,tid,ip,sym,dso`: samples apart by empty lines, innermost frames first."""
    found: defaultdict[Stack, float] = defaultdict(float)
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip("\n").splitlines()
        head = _PERF_HEAD.match(lines[0]) if lines else None
        if head is None:
            continue
        frames = [_perf_frame(match) for line in lines[1:] if (match := _PERF_FRAME.match(line))]
        found[(f"{head['comm']} (native)", *_tidied(reversed(frames[:_FRAMES_MAX])))] += 1 / rate
    return dict(found)


def _perf_frame(match: "re.Match[str]") -> str:
    symbol, where = match["symbol"].strip(), match["object"].rsplit("/", 1)[-1]
    symbol = re.sub(r"\+0x[0-9a-f]+$", "", symbol)
    while (shorter := _ARGUMENTS.sub("", symbol)) != symbol:
        symbol = shorter
    return f"{symbol.replace(';', ':')} ({where})"


def is_waiting(stack: Stack) -> bool:
    """Is the innermost frame a call that waits? A wait in libc without a symbol is known by its caller."""
    leaf, _, where = stack[-1].rpartition(" (")
    if leaf in _WAITS:
        return True
    if stack[-1].startswith(_NAMELESS) and where.startswith("libc"):
        caller = next((frame for frame in reversed(stack[:-1]) if not frame.startswith(_NAMELESS)), "")
        symbol = caller.rpartition(" (")[0]
        return symbol in _WAITS or symbol in _LOCKS or _PYTHON_LOCK.match(symbol) is not None
    return False


def scaled(stacks: Stacks, seconds: Mapping[str, float]) -> Stacks:
    """By their first frame, a thread's name, made to take so many seconds together. Those that are not named stay out
    if they are not known; a thread that was seen nowhere gets a frame that says so."""
    found: defaultdict[str, float] = defaultdict(float)
    for stack, taken in stacks.items():
        found[stack[0]] += taken
    made = {
        stack: taken * seconds[stack[0]] / found[stack[0]] for stack, taken in stacks.items() if stack[0] in seconds
    }
    for name, taken in seconds.items():
        if name not in found and taken > 0:
            made[name, UNKNOWN] = taken
    return made


def below(root: str, stacks: Stacks) -> Stacks:
    """The same under one frame more."""
    return {(root, *stack): seconds for stack, seconds in stacks.items()}


def together(many: Iterable[Stacks]) -> Stacks:
    found: defaultdict[Stack, float] = defaultdict(float)
    for stacks in many:
        for stack, seconds in stacks.items():
            found[stack] += seconds
    return dict(found)


def collapsed(stacks: Stacks) -> str:
    """A line a stack, with microseconds: as flamegraph.pl, speedscope and others read it."""
    lines = [f"{';'.join(stack)} {round(seconds * 1e6)}" for stack, seconds in sorted(stacks.items())]
    return "".join(f"{line}\n" for line in lines)
