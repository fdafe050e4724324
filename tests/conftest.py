"""What every test relies on: the code under test is this checkout's, or a package installed to be tested by it."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import fastquorum

# No example is timed: a busy machine is no fault of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Whoever starts this in the background of a script, or by nohup, has it ignore these, and with it every process that it
# starts: those whose Ctrl-C or hanging up is tested too. A handler is no more in what is started; one that does nothing
# keeps the tests themselves running, as whoever said nohup wants.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, lambda *_: None),
    (signal.SIGHUP, lambda *_: None),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

LEFT_OUT = "not long"
"""Tests that the whole suite leaves out; a path that is named runs all that is there."""
_SPARK = "tests/spark/test_"
"""Files whose tests share a session, except few that have none or one of their own."""
_MUTANTS = "tests/sim/test_mutants.py"
ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "tests" / "spark" / "conf"))
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def is_another_checkout(package: Path) -> bool:
    """Whether these tests would judge the sources of a checkout that is not theirs."""
    return not package.is_relative_to(ROOT) and _INSTALLED.isdisjoint(package.parts)


# An editable install wins over PYTHONPATH, so a second checkout would silently test the first one's code. A plain
# install, wherever its virtual environment lies, is what somebody chose to test: so a built wheel is tried out.
assert not is_another_checkout(Path(str(fastquorum.__file__)).resolve()), (
    f"fastquorum is imported from {fastquorum.__file__}, which is another checkout than this one ({ROOT}): "
    "install it into a virtual environment in here with  python3 -m venv .venv && .venv/bin/pip install '.[test]'"
)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Without a path, the whole suite, it runs in three processes, each file in one of them: more than half of its time
    is waiting for other processes. With a path, a debugger or `-n` it runs as it is asked to."""
    if hasattr(config, "workerinput"):
        config.option.markexpr = config.workerinput["markexpr"]
        return  # it is one of the three, and is called as the whole was
    is_whole = config.args_source == pytest.Config.ArgsSource.TESTPATHS
    if is_whole and not config.option.markexpr:
        config.option.markexpr = LEFT_OUT
    is_free = config.pluginmanager.hasplugin("xdist") and config.option.numprocesses is None
    if is_whole and is_free and not config.option.usepdb:
        config.option.numprocesses = 3
        config.option.dist = "loadfile"
        config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the decision of the main process on what to leave out to a worker."""
    node.workerinput["markexpr"] = node.config.option.markexpr


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What shares a Spark runs in one process: starting and warming another takes as long as many of its tests. What
    computes for long, and shares nothing, is dealt out test by test: else one process computes when the others have
    ended."""
    if config.option.dist != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            if file == _MUTANTS:
                return nodeid
            return _SPARK if file.startswith(_SPARK) else file

    return ByFile(config, log)


def pytest_report_header(config: pytest.Config) -> str | None:
    """What a plain run leaves out."""
    if config.option.markexpr != LEFT_OUT:
        return None
    return "left out: what takes long, or runs Apache Kafka or Spark, which `pytest -m long` has"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs a Java is long. Among several processes, what waits longest goes first: who began it last would end
    long after the others."""
    for item in items:
        if item.get_closest_marker("interop") or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    return 0 if item.nodeid.startswith(_SPARK) else 1 if item.get_closest_marker("interop") else 2
