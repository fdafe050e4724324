"""`python -m bench instructions`: how many instructions a call of each native kernel takes, counted by callgrind.

Wall time moves with the machine's mood; this count hardly moves at all, so that a change of a few percent shows. It is
compared with `instructions.json`, which holds a baseline for each kind of build (machine, CPU path, compiler, Python),
and guards against a kernel that grew: by a share, and by more than the few instructions that the interpreter takes more
or fewer from run to run. Python's own instructions around a call are in it. Valgrind knows no AVX-512: the
path that is counted is the best that it can run, and is part of the build's name.
"""

import argparse
import ctypes
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import fastquorum
from bench import floors
from bench.report import table

BASELINE = Path(__file__).with_name("instructions.json")
ROOT = Path(__file__).parent.parent
TOLERANCE = 0.03
JITTER = 25
"""Instructions a call, of the interpreter's, that two runs of one build may differ by. Of the smallest kernels, which
take some hundred with the call, that is more than the tolerance."""
WARM_CALLS, CALLS, MORE_CALLS = 100, 10, 60
"""A call's count is the difference of two runs, so that what is done once a run falls out. Before them the interpreter
has specialized its own code, and caches are filled."""
ROUNDS = 3
"""How often a kernel that grew is counted at most; its least count is compared. Where the interpreter's allocator
stands moves `split frames` by up to 3%, alike in all runs of one environment: each round begins elsewhere in it."""
FRAME_BYTES, MOVED_BY = 200, 1_009
"""The size of the frames in question, and how many objects of that size stand before them in each next round."""
LEFT_OUT = ("16 MB",)
"""Says nothing that 64 KB does not."""


class Change(NamedTuple):
    kernel: str
    now: float
    before: float | None

    def verdict(self, tolerance: float) -> str:
        if self.before is None:
            return "new"
        if abs(self.now - self.before) <= max(JITTER, self.before * tolerance):
            return ""
        return "GREW" if self.now > self.before else "shrank"


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    known: dict[str, dict[str, float]] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    counts, build = count()
    for moved in range(1, ROUNDS):
        if not grown(compare(counts, known.get(build, {})), options.tolerance):
            break
        again, _ = count(moved)
        counts = {kernel: min(found, again[kernel]) for kernel, found in counts.items()}
    if options.update:
        known[build] = counts
        BASELINE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        print(f"wrote {len(counts)} counts for {build} to {BASELINE.name}", file=sys.stderr)
    changes = compare(counts, known.get(build, {}))
    if options.format == "json":
        print(json.dumps({"build": build, "has_baseline": build in known, "kernels": counts}, indent=1))
    else:
        print("\n".join([build, "", *lines(changes, options.tolerance)]))
    if build not in known:
        print(f"no baseline for {build}: nothing is compared; --update adds one", file=sys.stderr)
        return 0
    too_many = grown(changes, options.tolerance)
    missing = sorted(known[build].keys() - counts.keys())
    if too_many or missing:
        limit = f"{options.tolerance:.0%} and {JITTER} instructions"
        print(f"more than {limit} over the baseline: {'; '.join(too_many) or 'none'}", file=sys.stderr)
        print(f"in the baseline, not counted: {'; '.join(missing) or 'none'}", file=sys.stderr)
        print("if that is meant: python -m bench instructions --update", file=sys.stderr)
        return 1
    return 0


def compare(counts: Mapping[str, float], baseline: Mapping[str, float]) -> list[Change]:
    return [Change(kernel, now, baseline.get(kernel)) for kernel, now in counts.items()]


def grown(changes: Iterable[Change], tolerance: float) -> list[str]:
    return [each.kernel for each in changes if each.verdict(tolerance) == "GREW"]


def lines(changes: Iterable[Change], tolerance: float) -> list[str]:
    rows = [("kernel", "instructions a call", "baseline", "")]
    for each in changes:
        before = f"{each.before:,.0f}" if each.before is not None else ""
        rows.append((each.kernel, f"{each.now:,.0f}", before, each.verdict(tolerance)))
    return table(rows)


def count(moved: int = 0) -> tuple[dict[str, float], str]:
    """By kernel, and which build they are of. `moved` is how many small objects the allocator has given out before."""
    if shutil.which("valgrind") is None:
        raise SystemExit("bench: no valgrind; Debian, Ubuntu: apt install valgrind")
    marks = floors.callgrind_marks()
    with tempfile.TemporaryDirectory(prefix="fastquorum-bench-") as directory:
        out = f"{directory}/callgrind"
        command = [
            *("valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"),
            *(sys.executable, "-m", "bench.instructions", str(marks), str(moved * MOVED_BY)),
        ]
        environment = {"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"bench: valgrind ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        dumps = [file.read_text(errors="replace") for file in Path(directory).iterdir()]
    return per_call(dumps), done.stdout.strip().splitlines()[-1]


def per_call(dumps: Iterable[str]) -> dict[str, float]:
    """From callgrind's files, two a kernel: `CALLS, kernel` in the line that says what the file is."""
    totals: dict[str, dict[int, int]] = {}
    for dump in dumps:
        name = re.search(r"^desc: Trigger: Client Request: (\d+), (.+)$", dump, re.MULTILINE)
        total = re.search(r"^totals: (\d+)", dump, re.MULTILINE)
        if name and total:
            totals.setdefault(name[2], {})[int(name[1])] = int(total[1])
    return {
        kernel: round((found[MORE_CALLS] - found[CALLS]) / (MORE_CALLS - CALLS), 1)
        for kernel, found in sorted(totals.items())
    }


def build_name() -> str:
    build = fastquorum.build_info()
    python = ".".join(platform.python_version_tuple()[:2])
    return f"{platform.machine()}, {build.build_kind}, {build.cpu_path}, {build.compiler}, Python {python}"


def run_kernels(marks: str, moved: int) -> None:
    """Under callgrind, behind `moved` small objects. Peers stay out: only our kernels are counted, and they alone are
    waited for."""
    from bench import peers
    from bench.cases import Setting, batches, checksum, lookups, messages
    from bench.measure import Role

    peers.module = lambda name: None  # type: ignore[assignment]
    library = ctypes.CDLL(marks)
    held = [bytes(FRAME_BYTES) for _ in range(moved)]
    setting = Setting(tempfile.gettempdir(), is_quick=True, has_compiler=False)
    for subject in (checksum, batches, messages, lookups):
        for case in subject.cases(setting):
            name = f"{case.group}, {case.name}"
            native = [each for each in case.contenders if each.role is Role.NATIVE]
            if native and not any(text in name for text in LEFT_OUT):
                native[0].run(WARM_CALLS)
                for calls in (CALLS, MORE_CALLS):
                    library.counting_from_here()
                    native[0].run(calls)
                    library.counting_to_here(f"{calls}, {name}".encode())
    del held
    print(build_name())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench instructions", description=__doc__)
    parser.add_argument("--update", action="store_true", help="make this the baseline of this kind of build")
    parser.add_argument(
        "--tolerance", type=float, default=TOLERANCE, metavar="SHARE", help="allowed growth (default: %(default)g)"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    return parser


if __name__ == "__main__":
    run_kernels(sys.argv[1], int(sys.argv[2]))
