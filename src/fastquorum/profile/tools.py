"""The samplers as processes of their own: py-spy for threads that run Python, perf for those that never do."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sysconfig
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from fastquorum.errnos import reason
from fastquorum.errors import FastQuorumError, UsageError
from fastquorum.profile.stacks import Stacks, of_perf, of_py_spy

START_S: Final = 30.0
"""Reading the symbols of a process takes py-spy a second, or a few."""
FINISH_S: Final = 60.0
SCRIPT_S: Final = 300.0
_HINTS: Final = (
    "run it as root, give the container CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE), or allow it: "
    "sysctl kernel.yama.ptrace_scope=0"
)
_PERF_HINT: Final = "run it as root, or allow it: sysctl kernel.perf_event_paranoid=1"


class Missing(NamedTuple):
    """A part that the profile lacks, why, and what to do about it."""

    what: str
    why: str
    hint: str


@dataclass(eq=False)
class SamplerFailed(FastQuorumError):
    """A sampler did not do its work; what that leaves out stands in `missing`."""

    missing: Missing

    def __str__(self) -> str:
        return f"{self.missing.what}: {self.missing.why}"


class Sampler:
    """One such process, until `finish`. SamplerFailed if it cannot begin."""

    what: ClassVar[str]
    begun: ClassVar[str]
    """It says this when it samples; empty: nothing is waited for."""

    def __init__(self, command: Sequence[str], output: str, rate: int) -> None:
        self.rate = rate
        self.output = output
        self._lines: list[str] = []
        self._begun = threading.Event()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C in the terminal is for the load, which then ends in order
            )
        except OSError as error:
            raise SamplerFailed(Missing(self.what, f"{command[0]} cannot be started: {reason(error)}", "")) from error
        self._reader = threading.Thread(target=self._listen, name="sampler", daemon=True)
        self._reader.start()
        if self.begun:
            self._begun.wait(START_S)
            if self._process.poll() is not None or not self._begun.is_set():
                self.abandon()
                raise SamplerFailed(self._why())

    def stop(self) -> None:
        """Have it end and write what it found."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)

    def abandon(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._close()

    def finish(self) -> Stacks:
        """What it found, after `stop`. SamplerFailed."""
        try:
            self._process.wait(FINISH_S)
        except subprocess.TimeoutExpired:
            self.abandon()
            raise SamplerFailed(
                Missing(self.what, f"it did not end within {FINISH_S:g} s", "try a lower --rate")
            ) from None
        self._reader.join()
        self._close()
        if not os.path.exists(self.output) or not os.path.getsize(self.output):
            raise SamplerFailed(self._why())
        return self._read()

    def _read(self) -> Stacks:
        raise NotImplementedError

    def _why(self) -> Missing:
        raise NotImplementedError

    @property
    def _last_words(self) -> str:
        return next(
            (line for line in reversed(self._lines) if line.strip()), f"it ended with {self._process.returncode}"
        )

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line.strip())
            if self.begun and self.begun in line:
                self._begun.set()
        self._process.wait()  # it has said its last word a moment before it is over
        self._begun.set()  # nothing more will come

    def _close(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()


class PySpy(Sampler):
    """Threads that run Python, with their native frames; those that wait, too.

    It takes many a thread that waits for one that runs, so it is asked for all: `stacks.is_waiting` tells them apart.
    """

    what = "stacks of threads that run Python"
    begun = "Sampling process"

    def __init__(self, pid: int, rate: int, output: str) -> None:
        options = ["--native", "--threads", "--idle", "--function", "--rate", str(rate), "--format", "raw"]
        super().__init__([find_py_spy(), "record", "--pid", str(pid), *options, "--output", output], output, rate)

    def _read(self) -> Stacks:
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return of_py_spy(file.read(), self.rate)

    def _why(self) -> Missing:
        output = "\n".join(self._lines).lower()
        if "permission denied" in output or "not permitted" in output:
            return Missing(self.what, "py-spy may not trace the node: ptrace is not permitted here", _HINTS)
        return Missing(self.what, f"py-spy: {self._last_words}", "")


class Perf(Sampler):
    """The node's own native threads, on the processor, by the clock."""

    what = "stacks of native threads (fq-sockets, fq-flusher)"
    begun = ""

    def __init__(self, threads: Sequence[int], rate: int, output: str) -> None:
        perf = shutil.which("perf")
        if perf is None:
            raise SamplerFailed(Missing(self.what, "perf is not installed", "Debian: apt-get install linux-perf"))
        self._perf = perf
        options = ["-q", "-e", "cpu-clock", "-F", str(rate), "--call-graph", "dwarf,16384", "-o", output]
        super().__init__([perf, "record", *options, "-t", ",".join(map(str, threads))], output, rate)

    def _read(self) -> Stacks:
        command = [self._perf, "script", "-i", self.output, "--no-inline", "-F", "comm,tid,ip,sym,dso"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=SCRIPT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise SamplerFailed(Missing(self.what, f"perf script took longer than {SCRIPT_S:g} s", "")) from error
        finally:
            os.unlink(self.output)
        if done.returncode != 0:
            raise SamplerFailed(Missing(self.what, f"perf script: {done.stderr.strip()[-200:]}", ""))
        return of_perf(done.stdout, self.rate)

    def _why(self) -> Missing:
        output = "\n".join(self._lines)
        if "paranoid" in output or "ermission" in output or "ermitted" in output:
            return Missing(self.what, "perf may not trace the node's threads", _PERF_HINT)
        return Missing(self.what, f"perf: {self._last_words}", "")


def find_py_spy() -> str:
    """Beside this Python, or on the PATH. UsageError if it is nowhere."""
    beside = os.path.join(sysconfig.get_path("scripts"), "py-spy")
    found = beside if os.access(beside, os.X_OK) else shutil.which("py-spy")
    if found is None:
        raise UsageError("a profile needs py-spy, which is not installed", "pip install 'fastquorum[profile]'")
    return found


def python_threads(pid: int) -> dict[int, str]:
    """Python's names of a process's threads, by their ids; empty if py-spy cannot tell."""
    done = subprocess.run(
        [find_py_spy(), "dump", "--json", "--pid", str(pid)],
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )
    if done.returncode != 0:
        return {}
    return {each["os_thread_id"]: each["thread_name"] or "a thread" for each in json.loads(done.stdout)}


def hardware_counters_missing() -> Missing | None:
    """Whether perf could count cycles here; where it cannot, samples are taken by the clock alone."""
    what = "cycles, instructions and cache misses"
    perf = shutil.which("perf")
    if perf is None:
        return Missing(what, "perf is not installed", "Debian: apt-get install linux-perf")
    done = subprocess.run(
        [perf, "stat", "-x", ",", "-e", "cycles", "true"], capture_output=True, text=True, check=False
    )
    if done.returncode == 0 and "not supported" not in done.stderr:
        return None
    return Missing(
        what, "the machine offers no hardware counters (virtual machines seldom do): samples are by clock", ""
    )
