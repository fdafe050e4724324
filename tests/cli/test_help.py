"""Every command explains itself, quickly, and a wrong word is answered with usage."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.cli.main import COMMANDS, GROUPS
from fastquorum.node.settings.settings import SETTINGS
from tests.cli.conftest import COMMAND, Ran, environment, in_process
from tests.wire.golden import CLUSTER


@pytest.mark.parametrize("words", [command.words for command in COMMANDS], ids=" ".join)
def test_help_explains_with_an_example(fastquorum: Callable[..., Ran], words: tuple[str, ...]) -> None:
    ran = fastquorum(*words, "--help")
    assert ran.code == 0
    assert f"usage: fastquorum {' '.join(words)}" in ran.out
    assert "\nexample" in ran.out
    assert f"  fastquorum {' '.join(words)}" in ran.out or f"| fastquorum {' '.join(words)}" in ran.out


@pytest.mark.parametrize("words", [(), *((group,) for group in GROUPS)], ids=str)
def test_a_missing_command_is_wrong_usage(fastquorum: Callable[..., Ran], words: tuple[str, ...]) -> None:
    ran = fastquorum(*words)
    assert ran.code == 2
    assert ran.err.startswith("usage: fastquorum")


@pytest.mark.parametrize("words", [("frobnicate",), ("log", "frobnicate"), ("log", "dump"), ("read", "--bootstrap")])
def test_wrong_words_are_wrong_usage(fastquorum: Callable[..., Ran], words: tuple[str, ...]) -> None:
    ran = fastquorum(*words)
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from fastquorum.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'rich', 'asyncio', 'fastquorum.wire', 'fastquorum.node'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


def test_version(fastquorum: Callable[..., Ran]) -> None:
    assert fastquorum("--version").out.startswith("fastquorum 0.")


def test_random_uuids_are_kafkas_and_differ(fastquorum: Callable[..., Ran]) -> None:
    drawn = {fastquorum("random-uuid").out.strip() for _ in range(5)}
    assert len(drawn) == 5
    assert {len(each) for each in drawn} == {22}


def test_a_reader_that_goes_away_is_no_error() -> None:
    dump = subprocess.Popen(
        [*COMMAND, "log", "dump", str(CLUSTER / "c1")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert dump.stdout is not None
    assert dump.stderr is not None
    dump.stdout.readline()
    dump.stdout.close()
    error = dump.stderr.read()
    dump.stderr.close()
    assert dump.wait(30) == 141
    assert error == b""


def test_doctor_says_what_is_here(fastquorum: Callable[..., Ran], tmp_path: object) -> None:
    ran = fastquorum("doctor", "--data", tmp_path, "--format", "json")
    report = json.loads(ran.out)
    assert {
        "kernels",
        "cpu_path",
        "file_system",
        "fsync_p50_us",
        "fsync_p99_us",
        "clock_source",
        "lmdb",
    } <= report.keys()
    assert ran.code == (1 if report["problems"] else 0)
    assert "DOCTOR" in fastquorum("doctor", "--data", tmp_path).out


def test_doctor_finds_a_missing_directory_wrong(fastquorum: Callable[..., Ran], tmp_path: object) -> None:
    ran = fastquorum("doctor", "--data", f"{tmp_path}/nowhere")
    assert ran.code == 1
    assert "nowhere is not a directory" in ran.out


def test_doctor_on_a_place_for_no_files_blames_no_replica(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum("doctor", "--data", "/proc")
    assert ran.code == 1
    assert "choose a directory for files" in ran.out
    assert "replica" not in ran.out


def test_every_setting_is_listed_with_its_default(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum("run", "--settings")
    assert ran.code == 0
    rows = {line.split()[0]: line for line in ran.out.splitlines()[1:]}
    assert len(rows) == len(SETTINGS)
    fetch = rows["controller.quorum.fetch.timeout.ms"]
    assert fetch.split()[1:3] == ["2000", "FASTQUORUM_CONTROLLER_QUORUM_FETCH_TIMEOUT_MS"]


def test_a_sweep_reports_every_seed() -> None:
    ran = in_process("sim", "sweep", "--seeds", "7:9", "--jobs", "2", "--format", "json")
    assert ran.code == 0, ran.err
    assert [json.loads(line)["seed"] for line in ran.out.splitlines()] == [7, 8]


def test_run_and_replay_of_a_seed_agree(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum("sim", "run", "--seed", 7, "--format", "json")
    assert ran.code == 0
    replayed = fastquorum("sim", "replay", "--seed", 7, "--format", "json")
    *trace, report = [json.loads(line) for line in replayed.out.splitlines()]
    assert trace
    assert report == json.loads(ran.out)


@pytest.mark.parametrize("seeds", ["5", "5:5", "7:3", "a:b", "-1:3"])
def test_bad_seeds_are_wrong_usage(fastquorum: Callable[..., Ran], seeds: str) -> None:
    assert fastquorum("sim", "sweep", f"--seeds={seeds}").code == 2


def test_an_interrupted_sweep_ends_at_once() -> None:
    sweep = subprocess.Popen(
        [*COMMAND, "sim", "sweep", "--seeds", "15:100000", "--jobs", "2", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert sweep.stdout is not None
    assert sweep.stdout.readline().startswith(b'{"seed": 15')
    sweep.send_signal(signal.SIGINT)
    _, err = sweep.communicate(timeout=30)
    assert (sweep.returncode, err) == (130, b"")


@pytest.mark.parametrize("module", ["typing", "argparse", "fastquorum.errors", "fastquorum.cli.sim.run"])
def test_an_interrupt_while_the_command_is_still_being_imported_is_quiet(module: str) -> None:
    """The module is imported as by the installed script."""
    code = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.modules.pop({module!r}, None)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["fastquorum", "sim", "run", "--seed", "7"]
from fastquorum.cli.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("module", ["argparse", "fastquorum.errors", "fastquorum.cli.node.run"])
def test_a_signal_without_meaning_to_a_node_ends_none_that_is_still_being_imported(tmp_path: Path, module: str) -> None:
    code = f"""
import os, signal, sys
class Signalling:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGRTMIN):
                os.kill(os.getpid(), number)
sys.modules.pop({module!r}, None)
sys.meta_path.insert(0, Signalling())
sys.argv = ["fastquorum", "run", "--data", {str(tmp_path / "missing")!r}]
from fastquorum.cli.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)
    assert done.returncode == 2, "there is no such directory"


def test_a_quit_ends_a_node_that_is_still_being_imported_without_a_core(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
class Signalling:
    def find_spec(self, name, path=None, target=None):
        if name == "fastquorum.cli.node.run":
            os.kill(os.getpid(), signal.SIGQUIT)
sys.meta_path.insert(0, Signalling())
sys.argv = ["fastquorum", "run", "--data", {str(tmp_path / "missing")!r}]
from fastquorum.cli.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)
    assert (done.returncode, done.stderr) == (128 + signal.SIGQUIT, b"")


@pytest.mark.parametrize("ignored", [True, False])
def test_an_interrupt_is_ignored_where_the_shell_says_so(ignored: bool) -> None:
    """A shell without job control ignores it for programs in the background."""
    code = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN if {ignored} else signal.default_int_handler)
from fastquorum.cli.terminal import interrupts
interrupts.end_at_once()
interrupts.undo_first()
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)
    assert (done.returncode, done.stderr) == (0 if ignored else 7, b"")


def test_what_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    log = Path(__file__).parent / "golden" / "dumps" / "quota" / "00000000000000000000.log"
    done = subprocess.run(
        [*COMMAND, "log", "dump", str(log)],
        capture_output=True,
        timeout=30,
        env=environment(PYTHONIOENCODING="ascii"),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Zo\\xeb\\U0001f600" in done.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_said_in_one_line(unbuffered: str) -> None:
    env = environment(PYTHONUNBUFFERED=unbuffered)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "random-uuid"], stdout=full, stderr=subprocess.PIPE, timeout=30, text=True, env=env
        )
    assert done.returncode == 1
    assert done.stderr == "fastquorum random-uuid: stdout: No space left on device; make room on its file system\n"
