"""What Spark needs around it, made ready: a Java, the packages, and one Python for driver and workers."""

import os
import pwd
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fastquorum.errors import SparkEnvironmentError
from fastquorum.spark.sessions.java import Java, choose
from fastquorum.spark.sessions.python_packages import DRIVER, WORKERS, Flaw, package_flaws, python_flaws, versions


class Environment(NamedTuple):
    """What a session will run with."""

    java: Java
    variables: dict[str, str]
    """Environment variables that a process which starts Spark needs; empty text: the variable must not be there."""


def is_local(master: str) -> bool:
    """Return whether all of Spark runs on this machine, in one process or several."""
    return master.startswith("local")


def check_packages() -> None:
    """Raise SparkEnvironmentError if a Python package is missing, or has a version that is not supported."""
    _refuse(package_flaws(versions()))


def check_user() -> None:
    """Raise SparkEnvironmentError if this process's user has no name: Java asks the system for it, and Hadoop's login
    and Ivy fail without one, in a stack trace that does not say so."""
    user_id = os.getuid()
    try:
        pwd.getpwuid(user_id)
    except KeyError as error:
        raise SparkEnvironmentError(
            f"user id {user_id} has no entry in /etc/passwd, and Java needs the user's name",
            'add one (echo "spark:x:$(id -u):0::$HOME:/bin/sh" >> /etc/passwd as the container starts), or give one by '
            "nss_wrapper (LD_PRELOAD=libnss_wrapper.so with NSS_WRAPPER_PASSWD and NSS_WRAPPER_GROUP)",
        ) from error


def look(environment: Mapping[str, str], master: str = "local[*]") -> Environment:
    """Return what a session is run with by a process with this environment. Changes nothing, but may write the wrapper
    of Java (see `java.wrap`).

    Raises:
        SparkEnvironmentError: Spark cannot run as things are. It says what to do.
    """
    check_packages()
    check_user()
    if not sys.executable:
        raise SparkEnvironmentError("this process does not know its Python", "set PYSPARK_PYTHON to it")
    variables = {name: environment.get(name) or sys.executable for name in (WORKERS, DRIVER)}
    # A cluster's workers have their own files: what is named for them may not be here.
    here = (WORKERS, DRIVER) if is_local(master) else (DRIVER,)
    _refuse(python_flaws({**environment, **variables}, here))
    java = choose(environment)
    return Environment(java, {"JAVA_HOME": java.home, **variables})


def prepare(master: str = "local[*]") -> Environment:
    """Set, in this process, what Spark needs to start: JAVA_HOME, PYSPARK_PYTHON, PYSPARK_DRIVER_PYTHON.

    What is set already and does stays as it is. Done by `session`; to be called before a session that is built by hand.
    Raises SparkEnvironmentError if Spark cannot run as things are, which says what to do; then nothing is changed.
    """
    found = look(os.environ, master)
    for name, value in found.variables.items():
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)
    return found


def _refuse(flaws: Sequence[Flaw]) -> None:
    if flaws:
        raise SparkEnvironmentError(flaws[0].text, flaws[0].hint)
